"""scratch: python newconv.py SCRIPT... --zero-stage N --output DIR"""
import sys,pathlib,json
sys.path.insert(0,'/work/wt/k/server')
from dsmigrate.codemod.convert import convert
from dsmigrate.codemod.model import Options
from dsmigrate.codemod.runtime.assemble import assemble
from dsmigrate.codemod.runtime.sources import sources
args=sys.argv[1:]; scripts=[]; stage=None; out=None; i=0
while i<len(args):
    if args[i]=='--zero-stage': stage=int(args[i+1]); i+=2
    elif args[i]=='--output': out=pathlib.Path(args[i+1]); i+=2
    elif args[i]=='--target-version': i+=2
    else: scripts.append(pathlib.Path(args[i])); i+=1
parts=set(); code=0
for s in scripts:
    root=s.parent
    def read(p):
        f=root/p
        return f.read_bytes() if f.is_file() else None
    c=convert(read,s.name,Options(zero_stage=stage))
    for p,r in c.results.items():
        if r.new_source is not None:
            (out/p).parent.mkdir(parents=True,exist_ok=True); (out/p).write_bytes(r.new_source)
        for ch in r.changes:
            if ch.kind.value in('todo','refused'): print(p,ch.line,ch.code,ch.message,file=sys.stderr); code=1
    parts|=c.parts
    cfg=c.results[s.name].config
    if cfg: (out/'ds_config.json').write_text(json.dumps(cfg,indent=4))
if parts: (out/'ds_compat.py').write_text(assemble(parts,sources(),'dev').text)
sys.exit(code)
