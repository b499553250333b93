import sys,time,pathlib
sys.path.insert(0,'/work/wt/k/server')
sys.setrecursionlimit(20000)
from dsmigrate.codemod.program.project import Project
from dsmigrate.codemod.analysis.run import Run
from dsmigrate.codemod.analysis.events import render
root=pathlib.Path(sys.argv[1]); entry=sys.argv[2]
def read(p):
    f=root/p
    return f.read_bytes() if f.is_file() else None
t=time.time()
run=Run(Project(read,entry,bases=['']))
run.main()
dt=time.time()-t
if '-q' not in sys.argv: print("\n".join(render(run.root)))
print('steps',run.steps,'events',run.events,'modules',len(run.modules),f'{dt:.2f}s',file=sys.stderr)
