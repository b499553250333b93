"""Clips in odd places: behind the step that they seem to belong to, and clip functions that are handed on as values."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.role_names import CLIP_NORM, CLIP_VALUE, qualifies
from dsmigrate.codemod.steps.balance import branches_to
from dsmigrate.codemod.steps.forwards_beside import branches_apart, paths_to
from dsmigrate.codemod.steps.sites import find_backward, find_steps
from dsmigrate.codemod.tree import Function, Node, Statement

_MODULES = frozenset({"torch.nn.utils", "torch.nn.utils.clip_grad", "nn.utils"})


def handed_on(plan: Plan) -> list[Statement]:
    """Statements in which a clip function is a value: an alias, an argument of ``partial``, a default, an entry of a dict."""
    if not any("clip_grad" in text or "getattr" in text for text in plan.facts["texts"]):
        return []
    known = plan.imports.local_names("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_")
    found = {}
    for node, statement in plan.tree.statement_of.items():
        last = node.value if isinstance(node, cst.Name) else node.attr.value if isinstance(node, cst.Attribute) else ""
        if (last in known or isinstance(node, cst.Call)) and _is_clip(plan, node, statement):
            found[statement] = True
    return list(found)


def _is_clip(plan: Plan, node: Node, statement: Statement) -> bool:
    if isinstance(node, cst.Call):
        return _asks_for_clip(plan, node)
    if not isinstance(node, cst.Name | cst.Attribute) or isinstance(statement.node, cst.Import | cst.ImportFrom):
        return False
    if not qualifies(plan.imports, node, CLIP_NORM | CLIP_VALUE):
        return False
    root = (dotted(node) or "").partition(".")[0]
    parent = plan.tree.parent.get(node)
    if root not in plan.imports.by_part[plan.tree.part(node)] or (isinstance(parent, cst.Call) and parent.func is node):
        return False
    if isinstance(parent, cst.Arg) and parent.keyword is node:
        return False
    return (
        not isinstance(parent, cst.Attribute | cst.Param | cst.AssignTarget) or getattr(parent, "default", None) is node
    )


def _asks_for_clip(plan: Plan, call: cst.Call) -> bool:
    """``getattr(torch.nn.utils, "clip_grad_norm_")``, also with a name that is known only when the script runs."""
    if dotted(call.func) != "getattr" or len(call.args) < 2:
        return False
    name = call.args[1].value
    told = not isinstance(name, cst.SimpleString) or str(name.evaluated_value).startswith("clip_grad")
    return told and qualifies(plan.imports, argument(call, 0, None), _MODULES)


def behind_step(plan: Plan, call: cst.Call) -> tuple[bool, bool]:
    """Whether a clip comes behind the step of its turn, on a way at least; and whether that step is always taken by then."""
    ways = [_step_before(plan, path) for path in paths_to(plan, plan.tree.statement(call))]
    late = [step for step in ways if step is not None]
    sure = len(late) == len(ways) and all(_is_sure(step, statement) for step, statement in late)
    return bool(late), sure


def _step_before(plan: Plan, path: Sequence[Statement]) -> tuple[Statement, Statement] | None:
    """The step that came last before a clip, with the statement of the way that stands behind it."""
    for statement in path:
        marks = [
            (mark.order, kind, mark)
            for kind, calls in (("b", find_backward(plan)), ("s", find_steps(plan)))
            for call in calls
            for way in paths_to(plan, plan.tree.statement(call))
            for mark in way
            if mark.function is statement.function and mark is not statement
            if not branches_apart((statement,), (mark,)) and not branches_apart((mark,), (statement,))
        ]
        before = max((m for m in marks if m[0] < statement.order), default=None, key=lambda m: m[:2])
        after = min((m for m in marks if m[0] > statement.order), default=None, key=lambda m: m[:2])
        if before is not None and before[1] == "s" and (after is None or after[1] == "b"):
            return before[2], statement
        if marks:  # the innermost function that runs backward or steps tells
            return None
    return None


def _is_sure(step: Statement, statement: Statement) -> bool:
    path = branches_to(step)
    return branches_to(statement)[: len(path)] == path


def is_plain(plan: Plan, call: cst.Call) -> bool:
    """Whether nothing reads what a clip gives back."""
    node = plan.tree.statement(call).node
    return isinstance(node, cst.Expr) and node.value is call


def steps_in(plan: Plan, function: Function) -> list[Statement]:
    """The statements of a function that step the optimizer, or call what does."""
    ways = [path for call in find_steps(plan) for path in paths_to(plan, plan.tree.statement(call))]
    return list(dict.fromkeys(one for path in ways for one in path if one.function is function))


def clips_partial_sums(plan: Plan, call: cst.Call) -> bool:
    """Whether a clip stands outside the gate of an accumulating loop's step."""
    if plan.facts.get("managed"):
        return False
    statement = plan.tree.statement(call)

    def gates(path: tuple[tuple[Node, str], ...]) -> tuple[tuple[Node, str], ...]:
        return tuple(item for item in path if not isinstance(item[0], cst.If) or "%" in plan.code(item[0].test))

    own = gates(branches_to(statement))
    later = [step for step in steps_in(plan, statement.function) if step.order > statement.order]
    behind = [gates(branches_to(s)) for s in later]
    behind = [path for path in behind if path[: len(own)] == own]
    return bool(behind) and len(behind[0]) > len(own)
