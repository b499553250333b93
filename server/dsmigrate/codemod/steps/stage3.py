"""MG705 and MG707: what ZeRO stage 3 adds. Parameters are partitioned, and read whole only while they are gathered."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.ranks import rank_guard
from dsmigrate.codemod.steps.sites import find_backward
from dsmigrate.codemod.tree import Node, Statement, descendants

IDEAS = (
    Idea(
        "MG710",
        "no_grad instead of inference_mode",
        "Evaluation at ZeRO 3 runs under torch.no_grad().",
        "Parameters gathered under inference_mode are inference tensors; the next training step cannot use them.",
        "engine-semantics 16",
        Kind.CONVERTED,
    ),
    Idea(
        "MG707",
        "Parameters are gathered around an averaged copy",
        "At ZeRO 3 the update of an EMA model reads the parameters, so all ranks gather them around it.",
        "Outside forward and backward the module holds empty tensors at ZeRO 3.",
        "engine-semantics 16",
        Kind.CONVERTED,
    ),
)

_EMA = re.compile(r"(?:^|[._])ema|moving_average|momentum_update|update_average|swa|polyak", re.IGNORECASE)
_READS = frozenset({"parameters", "named_parameters", "state_dict"})


def run(plan: Plan) -> None:
    """Gather parameters where stage 3 needs it; nothing to do at the other stages."""
    if plan.zero_stage != 3:
        return
    done: set[Node] = set()
    _inference_mode(plan)
    for call in plan.tree.calls:
        if _updates_average(plan, call):
            _gather(plan, plan.tree.statement(call), done)
        elif _copies(plan, call):
            plan.todo("MG705", call, "deepcopy of the module fails at ZeRO stage 3: copy it before deepspeed.initialize",
                      "its parameters are partitioned")  # fmt: skip
    training = {plan.function_of(call) for call in find_backward(plan)}
    for statement in plan.tree.statements:
        node = statement.node
        if isinstance(node, cst.For) and _reads_weights(plan, node.iter):
            if plan.edits.is_removed(node) or _only_gradients(plan, node):
                continue
            if statement.function in training:
                _gather(plan, statement, done)
            elif plan.engine_name(statement.function) is None and _touches_values(node):
                _gather_callers(plan, statement, done)


def _inference_mode(plan: Plan) -> None:
    """Evaluation under inference_mode leaves tensors behind that the next training step cannot use."""
    for call in plan.tree.calls:
        if "torch.inference_mode" in plan.imports.names(call.func) and not call.args:
            plan.need("torch")
            plan.edits.replace(call.func, "torch.no_grad")
            plan.converted(
                "MG710", call, "inference_mode → no_grad", "at ZeRO 3 the next training step fails after inference_mode"
            )


def _updates_average(plan: Plan, call: cst.Call) -> bool:
    if plan.is_before_engine(call) or not isinstance(plan.tree.statement(call).node, cst.Expr | cst.Assign):
        return False
    name = dotted(call.func) or ""
    base = call.func.value if isinstance(call.func, cst.Attribute) else None
    averaged = bool(_EMA.search(name)) or (base is not None and "N" in plan.tags(base))
    return averaged and any(
        plan.is_ours(sub)
        for arg in call.args
        for sub in descendants(arg.value)
        if isinstance(sub, cst.Name | cst.Attribute)
    )


def _copies(plan: Plan, call: cst.Call) -> bool:
    if not (dotted(call.func) or "").endswith("deepcopy") or plan.is_before_engine(call):
        return False
    return any(plan.is_ours(arg.value) for arg in call.args)


def _reads_weights(plan: Plan, node: Node) -> bool:
    for sub in descendants(node):
        if isinstance(sub, cst.Call) and isinstance(sub.func, cst.Attribute) and sub.func.attr.value in _READS:
            if plan.is_ours(sub.func.value) and not plan.is_before_engine(sub):
                return True
    return False


def _only_gradients(plan: Plan, node: cst.For) -> bool:
    text = plan.code(node.body)
    return ".grad" in text or "requires_grad" in text


def _touches_values(node: cst.For) -> bool:
    """Whether a loop over parameters works on their values, and not only on shapes or names."""
    return any(
        isinstance(sub, cst.Attribute) and (sub.attr.value == "data" or sub.attr.value.endswith("_"))
        for sub in descendants(node.body)
    )


def _gather_callers(plan: Plan, statement: Statement, done: set[Node]) -> None:
    """Gather where a helper is called that reads the weights of the plain module (an average, a copy)."""
    for call in plan.flow.callers.get(statement.function, ()):
        if not plan.is_before_engine(call):
            _gather(plan, plan.tree.statement(call), done)


def _gather(plan: Plan, statement: Statement, done: set[Node]) -> None:
    engine = plan.engine_name(statement.function)
    line = statement.line_node
    if engine is None or rank_guard(plan, statement) is not None:
        plan.todo("MG705", statement, "gather the parameters on all ranks around this (deepspeed.zero.GatheredParameters)",
                  "the module holds empty tensors at ZeRO stage 3")  # fmt: skip
        return
    if line in done or any(o.line_node in done for o in statement.enclosing()):
        return
    done.add(line)
    plan.need("deepspeed")
    plan.edits.surround(line, f"deepspeed.zero.GatheredParameters(list({engine}.module.parameters()))")
    plan.converted(
        "MG707", statement, "the parameters are gathered around this", "the module holds empty tensors at ZeRO 3"
    )
