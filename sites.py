import sys,json,pathlib,traceback
sys.path.insert(0,'/work/wt/k/server')
from dsmigrate.codemod.program.project import Project
from dsmigrate.codemod.analysis.analysis import analysed
from dsmigrate.codemod.analysis.training import trainings, Site
from concurrent.futures import ProcessPoolExecutor
import signal
def one(r):
    root=pathlib.Path('/work/dev/'+r['repo'].replace('/','+')); entry=r['path']
    def read(p):
        f=root/p
        return f.read_bytes() if f.is_file() else None
    def stop(*_): raise TimeoutError
    signal.signal(signal.SIGALRM,stop); signal.alarm(90)
    try:
        a=analysed(Project(read,entry,bases=['']))
        out=[]
        for t in trainings(a):
            s=t.site
            out.append(f"wraps {[e.line for e in t.wraps]} bwd {[e.line for e in t.backwards]} steps {[e.line for e in t.steps]} | {(s.module.path,s.node.lineno,s.target,s.optimizer,s.wrap is not None) if isinstance(s,Site) else s} | {[t.engine_at(e) for e in t.backwards][:3]}")
        res="\n    ".join(out) or 'NO TRAINING'
    except BaseException as e:
        tb=traceback.extract_tb(e.__traceback__)[-1]; res=f'{type(e).__name__} {str(e)[:80]} {tb.filename.split("/")[-1]}:{tb.lineno}'
    signal.alarm(0)
    return f"{r['repo']}/{entry}\n    {res}"
if __name__=='__main__':
    rows=[json.loads(l) for l in open('/work/shared/corpus/ddp_scripts.jsonl')]
    rows=[r for r in rows if len(sys.argv)<2 or sys.argv[1] in r['repo']+r['path']]
    with ProcessPoolExecutor(2) as p:
        for x in p.map(one,rows): print(x[:330],flush=True)
