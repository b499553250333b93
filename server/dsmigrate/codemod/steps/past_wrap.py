"""MG121: training forwards that run the module inside the wrapper, of which DDP never averages the gradients."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.loop import loss_of
from dsmigrate.codemod.steps.reaching import calls_run, runs_engine, under_no_grad
from dsmigrate.codemod.steps.sites import find_backward
from dsmigrate.codemod.steps.unwrapped import is_unwrapped
from dsmigrate.codemod.tree import Node, descendants

IDEAS = (
    Idea(
        "MG121",
        "A training forward that goes past the wrapper",
        "The loss comes from model.module(x), or from a method of the module: DDP averages no gradients of such a forward, "
        "the engine averages those of any.",
        "DDP prepares its reduction in its own forward; without it each rank trains a model of its own, of which rank 0's is "
        "saved. The engine reduces whatever engine.backward gives.",
        "torch/nn/parallel/distributed.py, _pre_forward and prepare_for_backward; measured on two CPU processes: the ranks of the "
        "original have different gradients from the first step on",
        Kind.TODO,
    ),
)
_NO_FORWARD = frozenset(
    {"parameters", "named_parameters", "modules", "named_modules", "children", "buffers", "named_buffers", "state_dict",
     "train", "eval", "to", "cuda", "cpu", "half", "float", "bfloat16", "requires_grad_", "zero_grad", "apply"}
)  # fmt: skip


def run(plan: Plan) -> None:
    """Mark the first such forward of each loss."""
    for call in find_backward(plan):
        feeding = list(_feeding(plan, call))
        past = [found for found in feeding if _goes_past(plan, found)]
        if past and not any(runs_engine(plan, other) for other in feeding if other not in past):
            plan.todo("MG121", past[0], "DDP did not see this forward, so that it averaged no gradients and each rank trained a model of its "
                      "own; the engine averages them", "DDP prepares its reduction in its own forward")  # fmt: skip


def _feeding(plan: Plan, backward: cst.Call) -> Iterator[cst.Call]:
    """The calls that a loss comes from, through variables of its function and functions that compute it."""
    function = plan.function_of(backward)
    queue: list[Node] = [loss_of(plan, backward)]
    seen: set[str] = set()
    while queue:
        for part in descendants(queue.pop()):
            if isinstance(part, cst.Call):
                yield part
                yield from (c for c in calls_run(plan, [part]) if not under_no_grad(plan, plan.tree.statement(c)))
            text = dotted(part) if isinstance(part, cst.Name | cst.Attribute) else None
            if text is not None and text not in seen:
                seen.add(text)
                place = plan.flow.place(part, function)
                queue += [b.value for b in plan.flow.by_place.get(place, ()) if b.function is function] if place else []


def _goes_past(plan: Plan, call: cst.Call) -> bool:
    """Whether a call runs the plain module, once there is a wrapper around it, or a method of it."""
    if plan.is_before_engine(call) or under_no_grad(plan, plan.tree.statement(call)):
        return False
    func = call.func
    if _is_plain(plan, func):
        return True
    is_method = isinstance(func, cst.Attribute) and _is_plain(plan, func.value) and func.attr.value not in _NO_FORWARD
    return is_method and (
        not plan.flow.callees(call) or any(_computes(plan, inner) for inner in calls_run(plan, [call]))
    )


def _is_plain(plan: Plan, node: Node) -> bool:
    """Whether an expression is the module that is trained, taken out of its wrapper."""
    function = plan.tree.statement(node).function
    if function.name == "forward":
        return False
    if not isinstance(node, cst.Name | cst.Attribute):
        return _takes_out(plan, node)
    tags = {tag[0] for tag in plan.tags(node) if tag[0] in "ER" and tag[1:] in plan.group}
    is_kept = isinstance(node, cst.Name) and plan.flow.variable(node.value, function) in plan.raw_places
    if tags == {"R"} or is_kept:
        return True
    place = plan.flow.place(node, function) if tags else None
    bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
    given = [binding for binding in bindings if binding.function is function and binding.kind == "assign"]
    return len(given) == len(bindings) > 0 and all(_takes_out(plan, b.value) for b in given if b.index is None)


def _takes_out(plan: Plan, node: Node) -> bool:
    """``unwrap(model)`` and ``model.module if hasattr(model, "module") else model``."""
    function = plan.tree.statement(node).function
    if not isinstance(node, cst.Call | cst.IfExp) or not is_unwrapped(plan, node, function):
        return False
    if isinstance(node, cst.IfExp):
        return any(isinstance(one, cst.Attribute) and one.attr.value == "module" for one in (node.body, node.orelse))
    kinds = {tag[0] for tag in plan.tags(node) if tag[1:] in plan.group}
    return "R" in kinds and any(plan.is_ours(arg.value) for arg in node.args)


def _computes(plan: Plan, call: cst.Call) -> bool:
    """``self(x)`` or ``self.layer(x)``."""
    own = plan.function_of(call).self_name
    return own is not None and (dotted(call.func) or "").partition(".")[0] == own
