import sys
exec(open('try.py').read().split("t=time.time()")[0])
from collections import Counter
from dsmigrate.codemod.analysis import calls as C
own=Counter(); n=Counter(); stack=[0]
orig=C._run
def rem(run,function,given_,node,oy):
    nm=function.data['name']+':'+str(function.node.lineno)
    s=run.steps; stack.append(0)
    try: return orig(run,function,given_,node,oy)
    finally:
        inner=stack.pop(); tot=run.steps-s; own[nm]+=tot-inner; stack[-1]+=tot; n[nm]+=1
C._run=rem
import threading
def go():
    run=Run(Project(read,entry,bases=['']));run.main()
    print(run.steps)
    for k,v in own.most_common(25): print(v,n[k],k)
threading.stack_size(512*1024*1024)
t=threading.Thread(target=go);t.start();t.join()
