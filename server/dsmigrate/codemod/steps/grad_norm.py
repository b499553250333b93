"""MG422: the gradient norm that the script logs or tests comes from the engine, after the step."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.nodes import number
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.balance import branches_to
from dsmigrate.codemod.steps.parameters import is_all
from dsmigrate.codemod.steps.sites import find_steps, scaler_of, step_text
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_NORM_NAME = re.compile(r"grad(?:ient)?s?_?norm", re.IGNORECASE)
_OF_NORMS = re.compile(r"norm\(torch\.stack\(")
_POWER = re.compile(r"\*\*2|pow\(2\)|\*\*norm_type|pow\(norm_type\)|\.square\(")
_ROOT = re.compile(r"sqrt|\*\*0?\.5|\*\*\(1(?:\.0?)?/(?:2|norm_type)")
_EDITS = re.compile(
    r"\.(?:mul|div|add|sub|copy|zero|clamp|fill|set|detach|neg|masked_fill|addcmul)_\(|\.grad\s*(?:[-+*/]?=)(?!=)"
)


def measured_norms(plan: Plan) -> list[tuple[cst.Call, Statement, str]]:
    """Calls of a helper of the script that measures the norm of all gradients right before a step, with the engine's name.

    Only helpers whose every call can be served by the engine's own norm are among them; see ``norm_helpers``.
    """
    helpers = norm_helpers(plan)
    found = []
    for function in helpers:
        for call in plan.flow.callers.get(function, ()):
            engine = plan.engine_in(call)
            assert engine is not None
            found.append((call, plan.tree.statement(call), engine))
    return found


def norm_helpers(plan: Plan) -> set[Function]:
    """Functions that measure the 2-norm of gradients and change none, at places where the engine knows the same number."""
    found: set[Function] | None = plan.facts.get("norm_helpers")
    if found is None:
        found = {
            function
            for function in plan.tree.functions
            if _NORM_NAME.search(function.name) and _only_measures(plan, function)
            and all(_is_served(plan, call) for call in plan.flow.callers.get(function, ()))
            and plan.flow.callers.get(function)
        }  # fmt: skip
        plan.facts["norm_helpers"] = found
    return found


def _only_measures(plan: Plan, function: Function) -> bool:
    """Whether a function reads ``p.grad`` of its first parameter, changes nothing, and takes the 2-norm unless told."""
    node = function.node
    if not isinstance(node, cst.FunctionDef) or function.owner is not None or not function.params:
        return False
    text = plan.tree.module.code_for_node(node.body)
    if ".grad" not in text or "norm" not in text or _EDITS.search(text):
        return False
    if re.search(r"\bclip", text) or not any(isinstance(s.node, cst.Return) for s in function.statements):
        return False
    for param in node.params.params[1:]:
        if param.name.value != "norm_type" or param.default is None or number(param.default) not in (2, 2.0):
            return False
    squeezed = re.sub(r"\s", "", text)
    if not _OF_NORMS.search(squeezed) and not (_POWER.search(squeezed) and _ROOT.search(squeezed)):
        return False
    returned = [s.node.value for s in function.statements if isinstance(s.node, cst.Return)]
    return all(isinstance(value, cst.Name | cst.Call) or _is_root(value) for value in returned)


def _is_root(value: Node | None) -> bool:
    return isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Power)


def _is_served(plan: Plan, call: cst.Call) -> bool:
    statement = plan.tree.statement(call)
    node = statement.node
    params = call.args[0].value if call.args else argument(call, None, "parameters")
    if len(call.args) != 1 or params is None or not is_all(plan, params, 5):
        return False
    if not isinstance(node, cst.Assign) or node.value is not call or len(node.targets) != 1:
        return False
    target = dotted(node.targets[0].target)
    step = _step_after(plan, statement)
    if target is None or step is None or plan.engine_in(call) is None:
        return False
    return _is_unused_between(plan, target, statement, step) and not _is_gated(statement, step)


def _step_after(plan: Plan, statement: Statement) -> Statement | None:
    for call in find_steps(plan):
        step = plan.tree.statement(call)
        if step.function is statement.function and step.order > statement.order:
            return step
    return None


def keep_norm(plan: Plan, call: cst.Call, statement: Statement, engine: str) -> None:
    """The returned norm is used: the engine knows it after the step, at every stage once it is asked to keep it."""
    node = statement.node
    steps = [
        c
        for c in find_steps(plan)
        if plan.function_of(c) is statement.function and plan.tree.statement(c).order > statement.order
    ]
    plan.need("torch")
    target = plan.code(node.targets[0].target) if isinstance(node, cst.Assign) and node.value is call else None
    step = plan.tree.statement(steps[0]) if steps else None
    if target is None or step is None:
        _norm_by_hand(plan, call, statement, engine)
        return
    scaler = scaler_of(plan, steps[0]) if plan.options.precision == "keep" else None
    after = f"{target} = torch.as_tensor({engine}.get_global_grad_norm(), device={engine}.device)"
    condition = _own_condition(plan, target, statement, step)
    if condition is not None and _is_unused_between(plan, target, statement, step) and not _is_gated(statement, step):
        plan.edits.remove(node)
        lines = (f"if {condition}:", f"    {after}") if condition else (after,)
        if after not in plan.edits.after.get(step.line_node, ()):
            plan.edits.insert_after(step.line_node, *lines)
    elif (
        branches_to(statement) == branches_to(step)
        and isinstance(step.node, cst.Expr)
        and _is_free_between(plan, statement, step)
    ):
        # The norm is looked at before the step, which can as well come first: nothing in between touches the model.
        text = step_text(plan, plan.code(scaler) if scaler is not None else None, engine)
        plan.edits.substitute(node, text, after)
        plan.edits.remove(step.node)
    else:
        _norm_by_hand(plan, call, statement, engine)
        return
    keep_known(plan)
    plan.converted("MG422", statement, f"{target} is the engine's gradient norm, known after the step",
                   "get_global_grad_norm() is valid after step() only")  # fmt: skip


_NORM_HELPER = '''def keep_grad_norm(engine):
    """Let engine.get_global_grad_norm() know the norm at ZeRO stage 0 too; at stages 1-3 it does by itself."""
    if engine.zero_optimization():
        return

    def measure(*_):
        limit = engine.gradient_clipping() if engine.gradient_clipping() > 0 else float("inf")
        engine._global_grad_norm = torch.nn.utils.clip_grad_norm_(engine.module.parameters(), limit)

    if engine.gradient_clipping() > 0:
        engine.clip_fp32_gradients = measure
        return
    take_step = engine._take_model_step

    def step(*args, **kwargs):
        scaler = getattr(engine, "torch_autocast_z0_gradscaler", None)
        if scaler is not None:
            scaler.unscale_(engine.optimizer)  # a step that it skips has a norm too: inf or nan
        measure()
        take_step(*args, **kwargs)

    engine._take_model_step = step
'''


def keep_known(plan: Plan) -> None:
    """Measure and clip by torch's own function at ZeRO stage 0, so that the engine knows the norm."""
    assert plan.site is not None
    if _NORM_HELPER not in plan.helpers:
        plan.helpers.append(_NORM_HELPER)
        plan.facts["keep_norm"] = True


def _own_condition(plan: Plan, target: str, statement: Statement, step: Statement) -> str | None:
    """Under which condition the name holds the norm, where it holds something else otherwise; None if that cannot be said.

    Empty where the name holds nothing else, or the same norm: then the engine's covers nothing.
    """
    others = [
        other.node.value
        for other in plan.tree.statements
        if other is not statement and other.function is statement.function and other.order < step.order
        if isinstance(other.node, cst.Assign) and any(dotted(place.target) == target for place in other.node.targets)
    ]
    own, path = branches_to(step), branches_to(statement)
    if path == own or all(_is_such_a_norm(plan, value) for value in others):
        return ""
    texts = []
    for node, branch in path[len(own) :] if path[: len(own)] == own else ():
        if not isinstance(node, cst.If) or any(isinstance(sub, cst.Call) for sub in descendants(node.test)):
            return None
        text = plan.code(node.test)
        texts.append(f"({text})" if branch == "body" else f"not ({text})")
    alone = len(texts) == 1 and texts[0].startswith("(")
    return texts[0][1:-1] if alone else " and ".join(texts) or None


def _is_such_a_norm(plan: Plan, value: Node) -> bool:
    if not isinstance(value, cst.Call):
        return False
    return "clip_grad_norm" in (dotted(value.func) or "") or plan.flow.callee(value) in norm_helpers(plan)


def _norm_by_hand(plan: Plan, call: cst.Call, statement: Statement, engine: str) -> None:
    if plan.flow.callee(call) is None:
        plan.edits.replace(call, f'torch.nn.utils.clip_grad_norm_({engine}.parameters(), float("inf"))')
    plan.needs_full_gradients(
        "MG422",
        statement,
        f"the gradient norm is used before the step; {engine}.get_global_grad_norm() knows it after {engine}.step()",
        "p.grad is whole between backward and step at ZeRO 0 only",
    )


def _is_gated(clip: Statement, step: Statement) -> bool:
    """Whether the step stands in a branch that the clip is not in: the norm would be missing on the other path."""
    own = branches_to(clip)
    return any(branch not in own for branch in branches_to(step))


def _is_free_between(plan: Plan, first: Statement, last: Statement) -> bool:
    """Whether nothing between two statements touches the model, the optimizer or gradients, or leaves the block."""
    for statement in plan.statements_between(first, last):
        if plan.edits.is_removed(statement.node):
            continue
        if isinstance(statement.node, cst.Continue | cst.Break | cst.Return | cst.Raise):
            return False
        for sub in descendants(statement.node):
            if isinstance(sub, cst.Name | cst.Attribute) and any(t[0] in "EROG" for t in plan.tags(sub)):
                return False
    return True


def _is_unused_between(plan: Plan, target: str, first: Statement, last: Statement) -> bool:
    for statement in plan.statements_between(first, last):
        node = statement.node
        if isinstance(node, cst.BaseCompoundStatement):
            head = getattr(node, "test", None) or getattr(node, "iter", None)
            nodes = [head] if head is not None else []
        else:
            nodes = [node.value] if isinstance(node, cst.Assign) and _names_only(node) else [node]
        for item in nodes:
            if any(dotted(sub) == target for sub in descendants(item) if isinstance(sub, cst.Name | cst.Attribute)):
                return False
    return first.order < last.order and first.function is last.function


def _names_only(node: cst.Assign) -> bool:
    """Whether an assignment only fills plain names, so that its targets read nothing."""
    return all(isinstance(target.target, cst.Name) for target in node.targets)
