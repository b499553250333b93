import sys
exec(open('try.py').read().split("t=time.time()")[0])
from collections import Counter
from dsmigrate.codemod.analysis import calls as C
runs=Counter(); miss=Counter()
orig=C._remembered
def rem(run,function,given_,node):
    key = (function, run.context, given_.args, tuple(given_.named.items()), given_.more, frozenset(run.assumed.items()),run.loops, bool(run.in_forward))
    ms=run.memory.get(key)
    n=function.data['name']
    if ms is None: miss[n,"nokey"]+=1
    else:
        for m in ms:
            bad=[(C.show(o) if hasattr(C,'show') else repr(o)) for o,v in m.versions if o.version!=v]
            badn=[nm for (o,nm),v in m.names if o.own.get(nm,C.UNBOUND)!=v]
            miss[n,'obj',tuple(bad)[:3],tuple(badn)[:3]]+=1
    s=run.steps
    r=orig(run,function,given_,node)
    runs[n]+=run.steps-s
    return r
C._remembered=rem
run=Run(Project(read,entry,bases=['']));run.main()
for k,v in miss.most_common(40): print(v,str(k)[:200])
print(runs.most_common(12))
