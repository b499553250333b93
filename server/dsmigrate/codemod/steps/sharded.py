"""What a model says about a part of the data that is each rank's own: in a loop over a loader with a DistributedSampler."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.flow import Place, argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_RUNS_OVER = frozenset({"enumerate", "tqdm", "iter", "islice", "track"})
_DEPTH = 5


def is_sharded_output(plan: Plan, call: cst.Call, reduced: set[Place]) -> bool:
    """Whether a call computes something from the model's output within a loop over a rank's part of the data.

    ``reduced`` are the variables that are the same on all ranks.
    """
    statement = plan.tree.statement(call)
    loops = [outer for outer in statement.enclosing() if isinstance(outer.node, cst.For)]
    return _asks_model(plan, call, statement, reduced, _DEPTH) and any(
        _is_sharded(plan, _listed(loop.node.iter), loop.function, _DEPTH)  # type: ignore[attr-defined]
        for loop in loops
    )


def _asks_model(plan: Plan, node: Node, statement: Statement, reduced: set[Place], depth: int) -> bool:
    """Whether an expression is made of what the model gives for the same round of a loop."""
    for sub in descendants(node):
        if isinstance(sub, cst.Call) and plan.is_ours(sub.func):
            return True
        place = plan.flow.place(sub, statement.function) if isinstance(sub, cst.Name) else None
        if not depth or place is None or place in reduced:
            continue
        for made in plan.flow.by_place.get(place, ()):
            if made.kind == "assign" and made.statement.up is statement.up and made.statement is not statement:
                if _asks_model(plan, made.value, made.statement, reduced, depth - 1):
                    return True
    return False


def _listed(node: Node) -> Node:
    """What ``enumerate(x)`` and ``tqdm(x, …)`` run over."""
    while isinstance(node, cst.Call) and (dotted(node.func) or "").rpartition(".")[2] in _RUNS_OVER and node.args:
        node = node.args[0].value
    return node


def _is_sharded(plan: Plan, node: Node, function: Function, depth: int) -> bool:
    """Whether a loader has a sampler that gives each rank another part; of several loaders, all have."""
    if isinstance(node, cst.Call):
        sampler = argument(node, None, "sampler") or argument(node, None, "batch_sampler")
        return sampler is not None and _samples_parts(plan, sampler, function, depth)
    place = plan.flow.place(node, function) if depth else None
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    return bool(bindings) and all(
        b.index is None and _is_sharded(plan, b.value, b.function, depth - 1) for b in bindings
    )


def _samples_parts(plan: Plan, node: Node, function: Function, depth: int) -> bool:
    if "DistributedSampler" in plan.code(node):
        return True
    place = plan.flow.place(node, function) if depth else None
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    return any(_samples_parts(plan, b.value, b.function, depth - 1) for b in bindings if b.index is None)
