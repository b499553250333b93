"""MG109 again: copies of the weights that are taken between the wrap, where DDP sent rank 0's to all, and the engine."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import assigned_to, dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.roles import Wrap
from dsmigrate.codemod.steps.buffers import sent_from_rank_0
from dsmigrate.codemod.steps.weight_parts import is_weight
from dsmigrate.codemod.tree import Function, Node, Statement

_COPIES = frozenset({"deepcopy", "state_dict", "averagedmodel", "clone"})
_FILLS = frozenset({"copy_", "add_", "lerp_", "set_"})
_DEPTH = 4


def spread_lines(plan: Plan, wrap: Wrap, target: str) -> list[str]:
    """Rank 0's weights for all ranks, where DDP's constructor sent them, if they are copied before the engine is made."""
    from_wrap = _ways(plan, wrap)
    early = [statement for statement in plan.tree.statements if _is_between(plan, statement, from_wrap, _DEPTH)]
    calls = [call for call in plan.tree.calls if _copies(plan, call)]
    fills = [statement for statement in early if _fills(plan, statement)]
    if not fills and not any(plan.tree.statement(call) in early for call in calls):
        return []
    plan.need("torch")
    plan.converted("MG109", wrap.statement, "rank 0's weights are sent to all ranks here, as DDP did when it was made",
                   "they are copied before the engine, which broadcasts them too, is made")  # fmt: skip
    return [
        f"for tensor in {target}.{'parameters()' if keeps_own_buffers(plan) else 'state_dict().values()'}:",
        *sent_from_rank_0(plan, "tensor"),
    ]


def keeps_own_buffers(plan: Plan) -> bool:
    """Whether DDP left each rank its own buffers: with ``broadcast_buffers=False`` its constructor sends none either."""
    values = [argument(wrap.call, 4, "broadcast_buffers") for wrap in plan.wraps if not wrap.is_apex]
    return bool(values) and all(value is not None and dotted(value) == "False" for value in values)


def _ways(plan: Plan, wrap: Wrap) -> dict[Function, int]:
    """The functions on the way to the wrap, with the order behind which their statements have a wrapped model."""
    found = {wrap.function: wrap.statement.last_order}
    queue = [wrap.function]
    for function in queue:
        for call in plan.flow.callers.get(function, ()):
            statement = plan.tree.statement(call)
            if statement.function not in found:
                found[statement.function] = statement.last_order
                queue.append(statement.function)
    return found


def _is_between(plan: Plan, statement: Statement, from_wrap: dict[Function, int], depth: int) -> bool:
    """Whether a statement may run when the original had wrapped the model and the engine is not made yet."""
    assert plan.site is not None
    function = statement.function
    until = plan.site.order if function is plan.site.function else plan.upstream.get(function)
    if until is not None and statement.order > until:
        return False
    if function in from_wrap:
        return statement.order > from_wrap[function]
    callers = plan.flow.callers.get(function, ()) if depth else ()
    return any(_is_between(plan, plan.tree.statement(call), from_wrap, depth - 1) for call in callers)


def _copies(plan: Plan, call: cst.Call) -> bool:
    """``deepcopy(model)``, ``model.state_dict()``, ``ModelEma(model)``, ``p.clone()``."""
    last = (dotted(call.func) or "").rpartition(".")[2].lower()
    owner = call.func.value if isinstance(call.func, cst.Attribute) else None
    if not last and isinstance(call.func, cst.Attribute):
        last = call.func.attr.value
    if last not in _COPIES and "ema" not in last:
        return False
    subjects: list[Node] = [arg.value for arg in call.args]
    subjects += [] if owner is None else [owner]
    function = plan.function_of(call)
    return any(plan.is_ours(subject) or is_weight(plan, subject, function) for subject in subjects)


def _fills(plan: Plan, statement: Statement) -> bool:
    """``q.data.copy_(p.data)`` and ``q.data = p.data``, where ``p`` is a weight of the model and ``q`` is none."""
    node = statement.node
    if isinstance(node, cst.Assign):
        targets = [t for t in assigned_to(node) if isinstance(t, cst.Attribute) and t.attr.value == "data"]
        return bool(targets) and is_weight(plan, node.value, statement.function)
    call = node.value if isinstance(node, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _FILLS:
        return False
    return any(is_weight(plan, arg.value, statement.function) for arg in call.args)
