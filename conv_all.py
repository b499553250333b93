import sys,pathlib,traceback,json,threading
sys.path.insert(0,'/work/wt/k/server')
from dsmigrate.codemod.convert import convert
from dsmigrate.codemod.model import Options
L=[('examples',p.name) for p in sorted(pathlib.Path('examples').glob('*.py'))]+[('examples/'+a.split('/')[0],a.split('/')[1]) for a in ('mae_engine/main_pretrain.py','bert_utils/run_tagging.py','config_tree/train.py','distribute_helper/main.py','library_scaler/main.py','task_state/train.py','trainer_hooks/train.py','two_entries/pretrain.py','two_entries/finetune.py')]
for root,entry in L:
    r=pathlib.Path(root)
    def read(p):
        f=r/p
        return f.read_bytes() if f.is_file() else None
    try:
        c=convert(read,entry,Options())
        plus=sum(l.startswith('+') and not l.startswith('+++') for x in c.results.values() for l in x.diff.splitlines()); minus=sum(l.startswith('-') and not l.startswith('---') for x in c.results.values() for l in x.diff.splitlines())
        todo=[(ch.code,ch.line,ch.message[:60]) for x in c.results.values() for ch in x.changes if ch.kind.value in('todo','refused')]
        print(f"{entry:24} +{plus} -{minus} {c.results[entry].status.value} {json.dumps(c.results[entry].config)[:10] if c.results[entry].config else ''} {sorted(c.parts)} {todo}")
    except Exception as e:
        tb=traceback.extract_tb(e.__traceback__)[-1]; print(f"{entry:24} ERR {type(e).__name__} {str(e)[:110]} {tb.filename.split('/')[-1]}:{tb.lineno}")
