"""MG218: what the parent shared with the workers of ``mp.spawn``, and what it did when they had ended."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.flow import SPAWNERS, argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.parents_work import LIGHT, shown, ways_to
from dsmigrate.codemod.steps.resumed_forms import are_exclusive
from dsmigrate.codemod.tree import Function, Node, Statement

IDEAS = (
    Idea(
        "MG218",
        "There is no parent of the workers any more",
        "What the parent of mp.spawn shared with its workers (queues, barriers, shared values), and what it did after they had "
        "ended, is no longer there once for all of them.",
        "The launcher starts every process by itself. Each then has a queue or a barrier of its own, where nobody else puts "
        "anything or waits, and goes on behind the training as soon as its own worker returns, while others still train or "
        "save. A second training in the same processes meets the groups that DeepSpeed keeps of the first.",
        "torch.multiprocessing.spawn, join; deepspeed/utils/groups.py, measured: a second initialize after "
        "destroy_process_group fails",
        Kind.TODO,
    ),
)

_SHARED = frozenset(
    {"Queue", "SimpleQueue", "JoinableQueue", "Pipe", "Manager", "Barrier", "Lock", "RLock", "Semaphore", "BoundedSemaphore",
     "Event", "Condition", "Value", "Array", "RawValue", "RawArray", "get_context"}
)  # fmt: skip
_NO_WORK = (*LIGHT, "info", "debug", "warning", "error", "time", "perf_counter", "exit", "values", "items", "keys", "sum",
            "float", "max", "min", "round", "range", "sorted", "list", "timedelta", "now", "total_seconds", "exists", "isfile")  # fmt: skip
_DEPTH = 4


def parent_is_gone(plan: Plan, spawns: list[Statement]) -> None:
    """Mark what only one parent of all workers could hold or do."""
    for call in plan.tree.calls:
        if plan.imports.names(call.func) & set(SPAWNERS):
            _shared(plan, call)
    for spawn in spawns:
        _afterwards(plan, spawn)


def _shared(plan: Plan, spawn: cst.Call) -> None:
    """Objects by which processes reach each other, among the arguments of the workers."""
    function = plan.function_of(spawn)
    for element in _elements(plan, argument(spawn, 1, "args"), function):
        made = _made_by_processes(plan, element, plan.tree.statement(spawn), _DEPTH)
        if made is not None:
            plan.todo("MG218", made, f"{plan.code(element)} was one for all workers; now every process has one of its own, where no other "
                      "puts anything or waits: use torch.distributed instead (barrier, all_gather_object)",
                      "the launcher starts the processes, and they share no object of multiprocessing")  # fmt: skip


def _elements(plan: Plan, packed: Node | None, function: Function) -> list[Node]:
    """The arguments in ``args=(…)`` or ``args=packed``."""
    if isinstance(packed, cst.Tuple | cst.List):
        return [element.value for element in packed.elements]
    place = plan.flow.place(packed, function) if isinstance(packed, cst.Name | cst.Attribute) else None
    values = [binding.value for binding in plan.flow.by_place.get(place, ())] if place is not None else []
    return [e.value for value in values if isinstance(value, cst.Tuple | cst.List) for e in value.elements]


def _made_by_processes(plan: Plan, node: Node, statement: Statement, depth: int) -> Statement | None:
    """The statement that makes such an object: ``mp.Queue()``, ``mp.Manager().dict()``, ``context.Barrier(2)``."""
    if isinstance(node, cst.Call):
        names = plan.imports.names(node.func)
        if any(name.startswith(("multiprocessing.", "torch.multiprocessing.")) for name in names):
            return statement if any(name.rpartition(".")[2] in _SHARED for name in names) else None
        owner = node.func.value if isinstance(node.func, cst.Attribute) else None
        made = None if owner is None else _made_by_processes(plan, owner, statement, depth)
        return None if made is None else statement
    place = plan.flow.place(node, statement.function) if isinstance(node, cst.Name | cst.Attribute) else None
    for binding in plan.flow.by_place.get(place, ()) if place is not None and depth else ():
        made = _made_by_processes(plan, binding.value, binding.statement, depth - 1)
        if made is not None:
            return made
    return None


def _afterwards(plan: Plan, spawn: Statement) -> None:
    """What ran in the parent when all workers had ended, in the function of the spawn and in those that call it."""
    told = False
    for way in ways_to(plan, spawn):
        if any(isinstance(outer.node, cst.For | cst.While) for outer in way.enclosing()):
            _say_again(plan, way)
        for call in plan.tree.calls:
            statement = plan.tree.statement(call)
            if not _comes_after(plan, statement, way):
                continue
            if plan.imports.names(call.func) & set(SPAWNERS):
                _say_again(plan, statement)
            elif not told and call not in plan.handled and _is_work(call):
                told = True
                plan.todo("MG218", statement, f"`{shown(plan, statement)}` ran once, when all workers had ended; now every process runs "
                          "this and what follows as soon as its own training returns: let one process do it, after a barrier at the "
                          "end of the training", "the launcher starts the whole script in every process")  # fmt: skip


def _say_again(plan: Plan, statement: Statement) -> None:
    plan.todo("MG218", statement, "several trainings ran one after the other, each in new processes; now the same processes run them: "
              "start the script once for each", "DeepSpeed keeps the groups of the first process group")  # fmt: skip


def _comes_after(plan: Plan, statement: Statement, way: Statement) -> bool:
    """Whether a statement runs after another one of its function, as far as branches and returns show."""
    if statement.function is not way.function or statement.order <= way.last_order or are_exclusive(statement, way):
        return False
    if isinstance(statement.node, cst.FunctionDef | cst.ClassDef | cst.Import | cst.ImportFrom):
        return False
    around = {way.block, *(outer.block for outer in way.enclosing())}
    leaves = [other.order for other in way.function.statements
              if _leaves(plan, other) and other.block in around and other.order > way.last_order]  # fmt: skip
    if leaves and statement.order > min(leaves):
        return False
    return not any(outer.branch == "handler" for outer in (statement, *statement.enclosing()))


def _leaves(plan: Plan, statement: Statement) -> bool:
    node = statement.node
    if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
        return bool(plan.imports.names(node.value.func) & {"sys.exit", "os._exit", "exit", "quit"})
    return isinstance(node, cst.Return | cst.Raise)


def _is_work(call: cst.Call) -> bool:
    last = (dotted(call.func) or "").rpartition(".")[2]
    return bool(last) and last not in _NO_WORK
