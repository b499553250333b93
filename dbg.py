import sys
exec(open('try.py').read().split("t=time.time()")[0])
from dsmigrate.codemod.analysis import run as R
from dsmigrate.codemod.analysis.values import show
orig=R.Run._widened
def w(self,loop,obj,key,now,new,*,certain):
    r=orig(self,loop,obj,key,now,new,certain=certain)
    if r!=now and certain: print('WIDEN',certain,loop.lineno,show(obj),key,'|',show(now)[:200],'|',show(new)[:200],'|',show(r)[:200])
    return r
R.Run._widened=w
run=Run(Project(read,entry,bases=['']));run.main()
