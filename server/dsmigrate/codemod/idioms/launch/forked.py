"""Workers that the script starts by fork: importing DeepSpeed asks for CUDA in the process that they are copies of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dsmigrate.codemod.analysis.events import Event, Happening
from dsmigrate.codemod.analysis.processes import spawn_around
from dsmigrate.codemod.analysis.summaries.python import MADE_FOR_A_START
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.analysis.values import Const, Expr, Obj
from dsmigrate.codemod.analysis.values import Kind as Is
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.program.edits import Import, Replace
from dsmigrate.codemod.program.module import Module, Step, names_of

IDEAS = (
    Idea(
        "MG230",
        "Processes that train are spawned, not forked",
        'multiprocessing.Process becomes get_context("spawn").Process, which starts a new Python; DataLoaders go on to fork theirs.',
        "Importing deepspeed asks torch.cuda.is_available(), after which a forked process cannot use CUDA: RuntimeError. A spawned one "
        'is given its function by name and imports the script again: where the start does not stand under `if __name__ == "__main__":`, '
        "or the function is no function of a file, it is marked.",
        "deepspeed/accelerator/real_accelerator.py, get_accelerator; torch/csrc/cuda/Module.cpp, poison_fork",
        Kind.CONVERTED,
    ),
)
_FORKED = frozenset({"multiprocessing.Process", "torch.multiprocessing.Process"})
_WHY = "a forked process cannot use CUDA once deepspeed is imported"


def forked(training: Training, facts: Facts) -> Iterator[Decision]:  # noqa: ARG001 - an idiom's signature
    """A decision for each place that forks a process which trains."""
    asked = [
        event["value"] for event in training.events(Happening.ACCESS) if event["name"] == Const("set_start_method")
    ]
    if any(value != Const("fork") for value in asked):
        return
    for spawn in dict.fromkeys(spawn_around(training.analysis, wrap.block) for wrap in training.wraps):
        if spawn is None or not _is_forked(spawn):
            continue
        made = None if asked else _spawned(training, spawn)
        if made is None:
            yield Decision(
                "MG230", Kind.TODO, spawn.module, spawn.node, 'start these processes by spawn: get_context("spawn").Process', _WHY,
            )  # fmt: skip
            continue
        edit, imports = made
        yield Decision(
            "MG230", Kind.CONVERTED, spawn.module, spawn.node, 'Process → get_context("spawn").Process', _WHY,
            edits=(edit,), imports=imports, suits_all=True,
        )  # fmt: skip


def _is_forked(spawn: Event) -> bool:
    return spawn["name"].value in _FORKED or spawn.what.get("method") == Const("fork")  # type: ignore[union-attr]


def _spawned(training: Training, spawn: Event) -> tuple[Replace, tuple[Import, ...]] | None:
    """The edit that has a process spawned; None where it could not be started so."""
    function, node = spawn["function"], spawn.node
    if spawn["name"].value not in _FORKED or not isinstance(node, ast.Call):  # type: ignore[union-attr]
        return None
    if not isinstance(function, Obj) or function.kind is not Is.FUNCTION or not _has_a_name(function):
        return None
    held = [one.args[0] for one in training.analysis.run.things_in(spawn["args"]) if isinstance(one, Expr) and one.args]
    if any(isinstance(one, ast.Call) and ast.unparse(one.func).rpartition(".")[2] in MADE_FOR_A_START for one in held):
        return None
    if not _is_guarded(training, spawn):
        return None
    if isinstance(node.func, ast.Attribute):
        return Replace(spawn.module, node.func, (node.func.value, '.get_context("spawn").Process')), ()
    if any("get_context" in scope for scope in spawn.names):
        return None
    source = str(spawn["name"].value).rpartition(".")[0]  # type: ignore[union-attr]
    new = Replace(spawn.module, node.func, ('get_context("spawn").Process',))
    return new, (Import(spawn.module, source, "get_context"),)


def _has_a_name(function: Obj) -> bool:
    """Whether a function stands at the top of a file, where another process finds it."""
    module: Module = function.data["frame"].module
    return isinstance(function.node, ast.FunctionDef) and function.node in module.tree.body


def _is_guarded(training: Training, spawn: Event) -> bool:
    """Whether a process starts under ``if __name__ == "__main__":``, and no function needs a global that is made there."""
    analysis = training.analysis
    places = [(spawn.module, spawn.node), *((one.module, one.node) for one in spawn.block.around())]
    for module, node in places:
        if module is None or node is None or module.path != analysis.project.entry or node is module.tree:
            continue
        step = module.step(node)
        if step.function is None and isinstance(step.node, ast.stmt):
            guard = _guard(step)
            return guard is not None and not _globals(module, guard)
    return False


def _guard(step: Step) -> ast.If | None:
    for one in step.around():
        if isinstance(one.node, ast.If) and any(
            isinstance(name, ast.Name) and name.id == "__name__" for name in ast.walk(one.node.test)
        ):
            return one.node
    return None


def _globals(module: Module, guard: ast.If) -> set[str]:
    """Names that are bound under the guard alone and that a function of the file reads: a new Python lacks them."""
    others = [node for node in module.tree.body if node is not guard]
    functions = [one for node in others for one in ast.walk(node) if isinstance(one, ast.FunctionDef | ast.Lambda)]
    own = {id(inner) for function in functions for inner in ast.walk(function)}
    elsewhere = {name for node in others for name in _stored(node, own)}
    read: set[str] = set()
    for function in functions:
        inner = list(ast.walk(function))
        local = {name for one in inner if isinstance(one, ast.FunctionDef | ast.Lambda | ast.ListComp | ast.SetComp
                 | ast.DictComp | ast.GeneratorExp) for name in names_of(one).local}  # fmt: skip
        read |= {one.id for one in inner if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)} - local
    return (set(_stored(guard, set())) - elsewhere) & read


def _stored(node: ast.AST, without: set[int]) -> Iterator[str]:
    for one in ast.walk(node):
        if id(one) in without and not isinstance(one, ast.FunctionDef):
            continue
        match one:
            case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import() | ast.ImportFrom():
                yield from ((alias.asname or alias.name.split(".")[0]) for alias in one.names)
