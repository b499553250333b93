"""MG207: what ran once, in the parent before a spawn, runs in every process of the launcher."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.reaching import calls_in
from dsmigrate.codemod.steps.resumed_forms import are_exclusive
from dsmigrate.codemod.tree import Function, Node, Statement

_HEAVY = (
    "dataset",
    "download",
    "prepare",
    "process",
    "makedirs",
    "mkdir",
    "rmtree",
    "write",
    "save",
    "dump",
    "load",
)
LIGHT = ("parse_args", "add_argument", "ArgumentParser", "device_count", "is_available", "print", "get", "int", "str", "len",
          "setdefault", "set_start_method", "strftime", "join", "format", "warn", "items")  # fmt: skip


def runs_in_every_process(plan: Plan, spawn: Statement) -> None:
    """What stood before the spawn, in its function and in those that lead to it, ran once, in the parent."""
    before = []
    for way in ways_to(plan, spawn):
        for call in plan.tree.calls:
            statement = plan.tree.statement(call)
            last = (dotted(call.func) or "").rpartition(".")[2]
            if statement.function is not way.function or call in plan.handled or not _in_the_parent(plan, statement):
                continue
            if isinstance(statement.node, cst.FunctionDef | cst.ClassDef | cst.Import | cst.ImportFrom):
                continue
            if statement.order < way.order and last and last not in LIGHT and not are_exclusive(statement, way):
                before.append(call)
    _say_before(plan, before, forked=_is_forked(spawn))


def _is_forked(spawn: Statement) -> bool:
    """Whether the workers were copies of the parent, its handlers and the state of its random numbers included."""
    call = spawn.node.value if isinstance(spawn.node, cst.Expr) else None
    if not isinstance(call, cst.Call) or (dotted(call.func) or "").rpartition(".")[2] != "start_processes":
        return False  # mp.spawn takes no other method, whatever it is given
    method = argument(call, 5, "start_method")
    return isinstance(method, cst.SimpleString) and method.evaluated_value == "fork"


def ways_to(plan: Plan, spawn: Statement) -> list[Statement]:
    """The statement with the spawn, and of each function that leads to it the last one that does."""
    ways = {spawn.function: spawn}
    queue = [spawn.function]
    while queue:
        for call in plan.flow.callers.get(queue.pop(), ()):
            statement = plan.tree.statement(call)
            known = ways.get(statement.function)
            if known is None:
                queue.append(statement.function)
            if known is None or known.order < statement.order:
                ways[statement.function] = statement
    return list(ways.values())


def _in_the_parent(plan: Plan, statement: Statement) -> bool:
    """Whether no worker runs a statement: it imports the file, and passes over what ``__name__`` guards."""
    if not statement.function.is_module:
        return True
    return any(isinstance(o.node, cst.If) and "__name__" in plan.code(o.node.test) for o in statement.enclosing())


def _say_before(plan: Plan, calls: list[cst.Call], *, forked: bool) -> None:
    seeders: list[cst.Call] = []
    for call in calls:
        statement = plan.tree.statement(call)
        if "signal.signal" in plan.imports.names(call.func):
            was = "the parent had this handler too" if forked else "this handler stood in the parent only"
            plan.kept("MG207", statement, f"{was}; now every rank has it, and the launcher, which the "
                      "scheduler's signals reach first, has none: handle them in the script that starts the launcher",
                      "forked workers inherit it" if forked else "spawned workers inherit no handler of Python")  # fmt: skip
        elif _seeds(plan, call):
            seeders.append(call)
        elif _is_heavy(plan, call) or _made_once(plan, call, statement) or _draws(plan, call, seeders):
            plan.todo("MG207", statement, f"`{shown(plan, statement)}` ran once in the parent and was shared; now every process "
                      "runs it: let rank 0 go first where it writes or downloads, and seed it where it is random",
                      "the launcher starts the whole script in every process")  # fmt: skip
    if seeders and not forked:
        names = ", ".join(dict.fromkeys(dotted(call.func) or "" for call in seeders))
        plan.kept("MG207", seeders[0], f"{names} seeded the parent only: spawned workers inherit no seed, and each drew numbers of its "
                  "own. Now every process is seeded, and alike: all ranks draw the same numbers (weights, dropout, augmentation) "
                  "until the worker seeds itself; add the rank to the seed there for numbers that differ by rank",
                  "the launcher runs the whole script in each process")  # fmt: skip


def shown(plan: Plan, statement: Statement) -> str:
    """The text of a statement, cut where it is long."""
    node = statement.node
    text = " ".join(plan.code(node.test if isinstance(node, cst.If | cst.While) else node).split())
    return text if len(text) < _SHOWN else text[:_SHOWN] + "…"


def _is_heavy(plan: Plan, call: cst.Call) -> bool:
    """Whether a call is named for work that is done once; reading settings is none."""
    last = (dotted(call.func) or "").rpartition(".")[2].lower()
    settings = any(name.partition(".")[0] in {"json", "yaml", "tomllib"} for name in plan.imports.names(call.func))
    return any(word in last for word in _HEAVY) and not settings and not _is_there_alike(plan, call)


def _is_there_alike(plan: Plan, call: cst.Call) -> bool:
    """``os.makedirs(args.out, exist_ok=True)``: whoever comes first makes the folder, if all processes call it the same."""
    exists = argument(call, None, "exist_ok")
    if exists is None or dotted(exists) != "True":
        return False
    beside = calls_in(plan).get(plan.function_of(call), ())
    return not any(name.startswith(_OF_ITS_OWN) for inner in beside for name in plan.imports.names(inner.func))


_OF_ITS_OWN = ("time.", "datetime.", "uuid.", "tempfile.", "random.", "secrets.", "os.getpid")
_RANDOM = ("torch.rand", "torch.multinomial", "torch.bernoulli", "torch.normal", "torch.utils.data.random_split", "numpy.random.",
           "random.", "sklearn.model_selection.")  # fmt: skip
_LIBRARIES = {"sklearn": "numpy"}


def _draws(plan: Plan, call: cst.Call, seeders: list[cst.Call]) -> bool:
    """Whether a function of the script draws numbers that no seed of the parent has made alike."""
    first = plan.flow.callee(call)
    seen: set[Function] = set()
    queue = [] if first is None else [first]
    drawn: set[str] = set()
    while queue:
        function = queue.pop()
        if function in seen or _is_of_a_model(function):
            continue
        seen.add(function)
        for inner in calls_in(plan).get(function, ()):
            queue += plan.flow.callees(inner)
            drawn |= {name for name in plan.imports.names(inner.func) if name.startswith(_RANDOM)}
    libraries = {_LIBRARIES.get(name.partition(".")[0], name.partition(".")[0]) for name in drawn}
    return any(not _seeds_library(plan, library, seeders) for library in libraries)


def _is_of_a_model(function: Function) -> bool:
    """Whether a function belongs to a module: its first weights are those of rank 0 on all ranks."""
    cls = function.owner
    return cls is not None and any(name.rpartition(".")[2].endswith("Module") for name in cls.bases)


def _seeds_library(plan: Plan, library: str, seeders: list[cst.Call]) -> bool:
    for call in seeders:
        names = plan.imports.names(call.func)
        if not any(name.startswith(("torch.", "numpy.", "random.")) for name in names):
            return True  # a function that seeds: as a rule all of them
        if any(name.startswith(f"{library}.") for name in names):
            return True
    return False


_SHOWN = 50
_SEEDER = re.compile(r"^(?:manual_)?seed(?:_all)?$|seed_everything", re.IGNORECASE)


def _seeds(plan: Plan, call: cst.Call) -> bool:
    """Whether a call seeds the global random numbers: by its name, or because a function of the script that it runs does."""
    callee = plan.flow.callee(call)
    if callee is not None:
        return any(_seeds_globally(inner) for inner in calls_in(plan).get(callee, ()))
    return _seeds_globally(call) or "seed" in (dotted(call.func) or "").rpartition(".")[2].lower()


def _seeds_globally(call: cst.Call) -> bool:
    """``torch.manual_seed(3)``, ``random.seed(3)``; not ``torch.Generator().manual_seed(3)``, which is a value."""
    text = dotted(call.func)
    return text is not None and bool(_SEEDER.match(text.rpartition(".")[2]))


_PLAIN_MODULES = ("os", "sys", "argparse", "time", "datetime", "json", "yaml", "pathlib", "math", "logging", "socket",
                  "torch.cuda", "torch.accelerator", "torch.device", "torch.multiprocessing", "warnings", "platform", "shlex",
                  "urllib.parse", "urllib.request.urlopen", "urllib.request.Request",
                  "torch.arange", "torch.zeros", "torch.ones", "torch.full", "torch.eye", "torch.linspace", "torch.tensor")  # fmt: skip


def _made_once(plan: Plan, call: cst.Call, statement: Statement) -> bool:
    """Whether a value that another module computes is kept in a variable: it may be random, large, or written to disk."""
    if not isinstance(statement.node, cst.Assign):
        return False
    names = plan.imports.names(call.func)
    text = dotted(call.func)
    if text is None or not plan.imports.meanings(text.partition(".")[0], statement.function):
        return False
    if any(name == m or name.startswith(m + ".") for name in names for m in _PLAIN_MODULES):
        return False
    return not _is_address(plan, statement, statement.node.targets[0].target)


def _is_address(plan: Plan, made: Statement, target: Node) -> bool:
    """Whether only ``init_process_group`` reads a value, where the launcher's address takes its place."""
    place = plan.flow.place(target, made.function)
    if place is None:
        return False
    readers: list[bool] = []
    for node, statement in plan.tree.statement_of.items():
        if node is target or not isinstance(node, cst.Name | cst.Attribute):
            continue
        if plan.flow.place(node, statement.function) == place:
            calls = [above for above in plan.tree.ancestors(node) if isinstance(above, cst.Call)]
            readers.append(any((dotted(call.func) or "").endswith("init_process_group") for call in calls))
    return bool(readers) and all(readers)
