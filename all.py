import sys,time,pathlib,json,traceback
from collections import Counter
sys.path.insert(0,'/work/wt/k/server'); sys.setrecursionlimit(20000)
from dsmigrate.codemod.program.project import Project
from dsmigrate.codemod.analysis.run import Run
from dsmigrate.codemod.analysis.events import Happening
def one(root,entry):
    root=pathlib.Path(root)
    def read(p):
        f=root/p
        try: return f.read_bytes() if f.is_file() else None
        except OSError: return None
    t=time.time(); run=Run(Project(read,entry,bases=[''])); err=''
    import threading
    try: run.main()
    except Exception as e:
        tb=traceback.extract_tb(e.__traceback__)[-1]; err=f'{type(e).__name__}: {str(e)[:100]} at {tb.filename.split("/")[-1]}:{tb.lineno}'
    c=Counter(e.kind for e in run.root.events())
    dt=time.time()-t
    print(f"{root.name[:22]:22} {entry[-42:]:42} {dt:6.2f}s steps {run.steps:7} ev {run.events:5} mod {len(run.modules):3} wrap {c[Happening.WRAP]} bwd {c[Happening.BACKWARD]} step {c[Happening.STEP]} opaque {c[Happening.OPAQUE]} {err}",flush=True)
import threading
def main():
    what=sys.argv[1]
    if what=='examples':
        for p in sorted(pathlib.Path('examples').glob('*.py')): one('examples',p.name)
        for p in ('mae_engine/main_pretrain.py','bert_utils/run_tagging.py','config_tree/train.py','distribute_helper/main.py','library_scaler/main.py','task_state/train.py','trainer_hooks/train.py','two_entries/pretrain.py'): one('examples/'+p.split('/')[0],p.split('/')[1])
    else:
        for l in open('/work/shared/corpus/ddp_scripts.jsonl'):
            r=json.loads(l)
            if len(sys.argv)>2 and sys.argv[2] not in r['repo']+r['path']: continue
            one('/work/dev/'+r['repo'].replace('/','+'),r['path'])
threading.stack_size(512*1024*1024); t=threading.Thread(target=main); t.start(); t.join()
