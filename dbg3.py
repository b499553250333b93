import sys
exec(open('try.py').read().split("t=time.time()")[0])
from dsmigrate.codemod.analysis import run as R
orig=R.Run.statement
def st(self,node):
    a=orig(self,node)
    f=self.frame
    if getattr(f.node,'name','')==sys.argv[3] and f.module.path==entry: print(node.lineno,type(node).__name__,str(a)[:100],len(f.exits))
    return a
R.Run.statement=st
import threading
def go():
    run=Run(Project(read,entry,bases=['']));run.main()
threading.stack_size(512*1024*1024)
t=threading.Thread(target=go);t.start();t.join()
