import sys,threading
exec(open('try.py').read().split("t=time.time()")[0])
from dsmigrate.codemod.analysis import run as R
from dsmigrate.codemod.analysis.values import show
orig=R.Run._widened
n=[0]
def w(self,loop,obj,key,now,new,*,certain):
    r=orig(self,loop,obj,key,now,new,certain=certain)
    if R._options(r)!=R._options(now) and certain and n[0]<25: n[0]+=1; print('WIDEN',loop.lineno,show(obj)[:40],str(key)[:30],'|',show(now)[:150],'|',show(new)[:150],'|',show(r)[:150])
    return r
R.Run._widened=w
def go():
    run=Run(Project(read,entry,bases=['']));run.main()
threading.stack_size(512*1024*1024)
t=threading.Thread(target=go);t.start();t.join()
