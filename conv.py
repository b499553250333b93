import sys,time,pathlib
sys.path.insert(0,'/work/wt/k/server')
from dsmigrate.codemod.convert import convert
from dsmigrate.codemod.model import Options
import json
root=pathlib.Path(sys.argv[1]); entry=sys.argv[2]
def read(p):
    f=root/p
    return f.read_bytes() if f.is_file() else None
c=convert(read,entry,Options(zero_stage=int(sys.argv[3]) if len(sys.argv)>3 else None))
for p,r in c.results.items():
    print(r.diff)
    for ch in r.changes:
        if '-v' in sys.argv or ch.kind.value in('todo','refused','kept'): print('   ',p,ch.line,ch.code,ch.kind.value,ch.message,'|',ch.reason)
print(json.dumps(c.results[entry].config), sorted(c.parts), c.results[entry].status)
