import sys
exec(open('try.py').read().split("t=time.time()")[0])
from dsmigrate.codemod.analysis.analysis import analysed
from dsmigrate.codemod.analysis.training import trainings, Site
a=analysed(Project(read,entry,bases=['']))
for t in trainings(a):
    s=t.site
    print(entry,'wraps',[e.line for e in t.wraps],'bwd',[e.line for e in t.backwards],'steps',[e.line for e in t.steps],'|', (s.module.path,s.node.lineno,s.target,s.optimizer,s.wrap is not None) if isinstance(s,Site) else s,'| engine at', {t.engine_at(e) for e in t.backwards})
