"""MG208: processes of the training that the script starts by other means than ``mp.spawn``."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.flow import SPAWNERS, argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function

IDEAS = (
    Idea(
        "MG208",
        "The script starts the processes itself",
        "The training is the target of multiprocessing.Process, or handed to a function that starts the processes: it has to be "
        "called once in each process of the launcher.",
        "DeepSpeed needs the launcher's environment. Left as it is, every process of the launcher would start more, and all of "
        "them would take the rank and world size of the one that started them and wait for each other.",
        "deepspeed/comm/comm.py, init_distributed; DESIGN of the codemod: mp.spawn is rewritten (MG202)",
        Kind.TODO,
    ),
)

_RANK = re.compile(r"rank|gpu|device|worker|^proc|process|^(?:i|idx|index)$", re.IGNORECASE)
_HARMLESS = frozenset(
    {"partial", "wraps", "record", "set_defaults", "register", "Thread", "callable", "isinstance", "signal"}
)
_STARTER = re.compile(r"launch|spawn|start_process|run_distributed|run_parallel", re.IGNORECASE)


def own_processes(plan: Plan, init_names: frozenset[str]) -> None:
    """Mark calls that start the training in processes of their own."""
    training = _functions_of_the_training(plan, init_names)
    spawned = any(plan.imports.names(call.func) & set(SPAWNERS) for call in plan.tree.calls)
    for call in plan.tree.calls:
        if call in plan.handled or plan.imports.names(call.func) & set(SPAWNERS):
            continue
        starter = (dotted(call.func) or "").rpartition(".")[2] or _last(call)
        target = argument(call, 1, "target") if starter == "Process" else None
        worker = plan.flow.function_named(target, plan.function_of(call)) if target is not None else None
        if worker is None and not spawned and starter not in _HARMLESS:
            worker = _handed_over(plan, call, training, starter)
        if worker is not None and worker in training:
            plan.todo(
                "MG208", call,
                f"{starter} starts the processes of {worker.name} here: call {worker.name} itself instead, once per process of the "
                'launcher, with int(os.environ["LOCAL_RANK"]) as the index and int(os.environ["WORLD_SIZE"]) as the number of processes',
                "the launcher starts the processes; each would start more, which wait for each other",
            )  # fmt: skip


def _last(call: cst.Call) -> str:
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else "the call"


def _functions_of_the_training(plan: Plan, init_names: frozenset[str]) -> set[Function]:
    """The functions that set up the process group or wrap the model, and those that call them."""
    found = {wrap.function for wrap in plan.wraps}
    found |= {plan.function_of(call) for call in plan.tree.calls if plan.imports.names(call.func) & init_names}
    queue = list(found)
    while queue:
        for call in plan.flow.callers.get(queue.pop(), ()):
            caller = plan.function_of(call)
            if caller not in found:
                found.add(caller)
                queue.append(caller)
    return {function for function in found if not function.is_module}


def _handed_over(plan: Plan, call: cst.Call, training: set[Function], starter: str) -> Function | None:
    """The function of the training that a call gets as a value and that nothing else calls, if the call may start processes.

    It may if it is named for that, or if the function asks for the number of its process.
    """
    for arg in call.args:
        if not isinstance(arg.value, cst.Name | cst.Attribute) or arg.star:
            continue
        function = plan.flow.function_named(arg.value, plan.function_of(call))
        if function is None or function not in training or plan.flow.callers.get(function):
            continue
        asks = any(_RANK.search(name) for name in function.params if name != function.self_name)
        if _STARTER.search(starter) or asks:
            return function
    return None
