"""Which statements all ranks reach, and which only some do."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_RANKISH = re.compile(
    r"rank|is_main|is_master|main_process|master_process|is_primary|primary|is_chief|\bmaster\b|is_root|is_global_zero|"
    r"\bgpu(?:_id)?\b\s*==\s*0|is_logger|local_master|get_rank|\bproc(?:ess)?_(?:id|index|idx)\b",
    re.IGNORECASE,
)


_COUNTER = re.compile(
    r"^(?:__name__|\w*(?:epoch|step|iter|idx|index|batch_i|it|num|count|ep|update)s?\w*|i|j|k|n|e|t|self|args|opt|opts|cfg|config|conf|"
    r"hparams|params|FLAGS|len|True|False|None|int|math|\w*(?:interval|freq|every|total|max|last|loader|dataloader)\w*)$",
    re.IGNORECASE,
)


def rank_guard(plan: Plan, statement: Statement) -> Statement | None:
    """The outermost ``if`` around a statement that lets only some ranks in."""
    found = None
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.If) and _RANKISH.search(plan.code(outer.node.test)):
            found = outer
    return found


def reached_by_all(plan: Plan, statement: Statement, depth: int) -> list[Statement] | None:
    """The statements around this one, in its function or in those that call it, that all ranks reach with an engine.

    None where one of the ways to the statement has no such place.
    """
    if depth == 0:
        return None
    guard = _outermost_doubt(plan, statement)
    function = statement.function
    calls = plan.flow.callers.get(function, ()) or _calls_by_name(plan, function)
    callers = [plan.tree.statement(call) for call in calls]
    guarded_call = any(rank_guard(plan, caller) is not None for caller in callers)
    anchor = guard if guard is not None else statement
    early = plan.site is not None and function is plan.site.function and anchor.order <= plan.site.order
    further = guarded_call or (guard is None and _is_saver(function)) or plan.engine_name(function) is None or early
    if not further:
        return [anchor]
    if not callers:
        return None if plan.engine_name(function) is None or early else [anchor]
    found: list[Statement] = []
    for caller in callers:
        inner = reached_by_all(plan, caller, depth - 1)
        if inner is None:
            return None
        found.extend(inner)
    return found


def _calls_by_name(plan: Plan, function: Function) -> list[cst.Call]:
    """Calls that may run a method of an object that came by a way not followed: those of any ``x.name(…)``."""
    if function.owner is None:
        return []
    return [
        call
        for call in plan.tree.calls
        if isinstance(call.func, cst.Attribute)
        and call.func.attr.value == function.name
        and plan.flow.callee(call) is None
        and not plan.imports.meanings((dotted(call.func) or "").partition(".")[0], plan.function_of(call))
    ]


def _is_saver(function: Function) -> bool:
    return bool(re.search(r"save|checkpoint|ckpt|snapshot|dump|store", function.name, re.IGNORECASE))


def _outermost_doubt(plan: Plan, statement: Statement) -> Statement | None:
    """The outermost enclosing ``if`` that may go another way on another rank."""
    doubt = None
    site = plan.site
    for outer in statement.enclosing():
        if isinstance(outer.node, cst.For | cst.While):
            break
        if site is not None and outer.function is site.function and outer.order < site.anchor.order <= outer.last_order:
            break
        if isinstance(outer.node, cst.If) and not is_uniform(plan, outer.node.test):
            doubt = outer
    while (
        doubt is not None
        and doubt.up is not None
        and isinstance(doubt.up.node, cst.If)
        and doubt.up.node.orelse is doubt.node
    ):
        doubt = doubt.up
    return doubt


def is_uniform(plan: Plan, test: Node) -> bool:
    """Whether a test is made of counters, options and constants only, which all ranks share."""
    text = plan.code(test)
    if _RANKISH.search(text):
        return False
    for sub in descendants(test):
        if isinstance(sub, cst.Call) and dotted(sub.func) not in ("len", "int", "max", "min", "getattr", "hasattr"):
            return False
        if isinstance(sub, cst.Name) and not _is_attribute_name(plan, sub) and not _COUNTER.match(sub.value):
            return False
    return True


def _is_attribute_name(plan: Plan, node: cst.Name) -> bool:
    parent = plan.tree.parent.get(node)
    return isinstance(parent, cst.Attribute) and parent.attr is node
