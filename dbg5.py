import sys
exec(open('try.py').read().split("t=time.time()")[0])
from dsmigrate.codemod.analysis import calls as C
from dsmigrate.codemod.analysis.values import show
orig=C._remembered
seen=[]
def rem(run,function,given_,node):
    if function.node.lineno==int(sys.argv[3]) and len(seen)<6:
        seen.append(1)
        c=run.context; path=[]
        while c.up is not None: path.append(getattr(c.node,'lineno',0)); c=c.up
        print(path[:12],[show(x) for x in given_.args],{k:show(v) for k,v in given_.named.items()},[getattr(l,'lineno',0) for l in run.loops],len(run.assumed), run.in_forward)
    return orig(run,function,given_,node)
C._remembered=rem
import threading
def go():
    run=Run(Project(read,entry,bases=['']));run.main()
threading.stack_size(512*1024*1024)
t=threading.Thread(target=go);t.start();t.join()
