"""Whether training comes behind a statement: in its function, in a loop around it, or behind a call of the function."""

from __future__ import annotations

import re

import libcst as cst

from dsmigrate.codemod.evaluation_order import runs_behind
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.sites import find_backward
from dsmigrate.codemod.tree import Function, Node, Statement

_WORDS = frozenset(
    {"eval", "evaluate", "evaluation", "evaluator", "val", "valid", "validate", "validation", "test", "tests", "testing", "infer",
     "inference", "predict", "prediction", "predictions", "export"}
)  # fmt: skip
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_EXITS = frozenset({"exit", "quit", "sys.exit", "os._exit"})


def is_named_for_evaluation(function: Function) -> bool:
    """Whether a word of a function's name says evaluation or export: ``test_model``, but not ``load_latest``."""
    return any(part.lower() in _WORDS for part in _PARTS.findall(function.name))


def is_evaluation(plan: Plan, statement: Statement) -> bool:
    """Whether a statement stands in a function for evaluation or export, and makes nothing that is trained later."""
    function = statement.function
    if not is_named_for_evaluation(function) or function in _trainings(plan):
        return False
    return not (plan.is_before_engine(statement.node) and training_follows(plan, statement))


def trains_within(plan: Plan, function: Function) -> bool:
    """Whether a function runs a backward, by itself or in what it calls."""
    return function in _trainings(plan)


def training_follows(plan: Plan, statement: Statement) -> bool:
    """Whether a backward may come behind a statement, as far as the calls of its function can be seen.

    A function that nothing here calls may be called before training, unless it trains itself or is named otherwise.
    """
    known: set[Function] = set()
    queue = [statement]
    while queue:
        here = queue.pop()
        function = here.function
        follows, returns = _follows_here(here, _trainings(plan).get(function, set()), plan)
        if follows:
            return True
        if not returns or function.is_module or function in known:
            continue
        known.add(function)
        callers = _callers(plan, function)
        if not callers and function not in _trainings(plan) and not is_named_for_evaluation(function):
            return True
        if any(_trains_behind(plan, caller, function) for caller in callers):
            return True
        queue += [caller for caller in callers if caller.function is not function]
    return False


def _trains_behind(plan: Plan, statement: Statement, function: Function) -> bool:
    """Whether the very statement that calls a function trains behind the call, or within: ``Trainer(net).fit()``."""
    trainings = _trainings(plan)
    marks = trainings.get(statement.function, set())
    if any(statement.order < mark.order <= statement.last_order for mark in marks):
        return True
    if function in trainings or statement not in marks:
        return False
    calls = [call for call in plan.tree.calls if plan.tree.statement(call) is statement]
    made = [call for call in plan.flow.callers.get(function, ()) if call in calls]
    return any(runs_behind(plan.tree, call, first) for first in made for call in calls)


def _follows_here(statement: Statement, marks: set[Statement], plan: Plan) -> tuple[bool, bool]:
    """Whether training follows in the statement's own function, and whether the function comes back to its callers."""
    one: Statement | None = statement
    while one is not None:
        later = [other for other in one.function.statements if other.block is one.block and other.order > one.order]
        leave = next((other for other in later if _leaves(plan, other.node)), None)
        last = later[-1].last_order if later else one.last_order
        until = last if leave is None else leave.order
        if any(one.last_order < mark.order <= until for mark in marks):
            return True, True
        if leave is not None and not isinstance(leave.node, cst.Break | cst.Continue):
            return False, isinstance(leave.node, cst.Return | cst.Raise)
        breaks = leave is not None and isinstance(leave.node, cst.Break)
        inner, one = one, _outer_loop(one) if leave is not None else one.up
        if one is not None and not breaks and _holds_training(one, inner, marks):
            return True, True
    return False, True


def _holds_training(outer: Statement, inner: Statement, marks: set[Statement]) -> bool:
    """Whether a compound statement runs training behind a part of it: in its next turn, or in what follows a ``try``."""
    if isinstance(outer.node, cst.For | cst.While):
        return any(outer.order <= mark.order <= outer.last_order for mark in marks)
    tried = isinstance(outer.node, cst.Try | cst.TryStar)
    return tried and any(inner.last_order < mark.order <= outer.last_order for mark in marks)


def _outer_loop(statement: Statement) -> Statement | None:
    return next((o for o in statement.enclosing() if isinstance(o.node, cst.For | cst.While)), None)


def _leaves(plan: Plan, node: Node) -> bool:
    if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
        return bool(plan.imports.names(node.value.func) & _EXITS)
    return isinstance(node, cst.Return | cst.Raise | cst.Break | cst.Continue)


def _trainings(plan: Plan) -> dict[Function, set[Statement]]:
    """The functions that run a backward, by themselves or in what they call, with the statements that do so."""
    found: dict[Function, set[Statement]] | None = plan.facts.get("trainings")
    if found is None:
        found = plan.facts["trainings"] = {}
        runs = [*find_backward(plan), *plan.facts["handed_backward"]]
        queue = [plan.tree.statement(call) for call in runs]
        while queue:
            statement = queue.pop()
            if statement.function not in found:
                queue += _callers(plan, statement.function)
            found.setdefault(statement.function, set()).add(statement)
    return found


def _callers(plan: Plan, function: Function) -> list[Statement]:
    """The statements that call a function, be it by the name of a method, or hand it on as a value."""
    calls = list(plan.flow.callers.get(function, ()))
    name = function.name
    if not calls and function.owner is not None:
        calls = [
            call
            for call in plan.tree.calls
            if isinstance(call.func, cst.Attribute)
            and call.func.attr.value == name
            and plan.flow.callee(call) is None
            and not plan.is_ours(call.func.value)
            and not plan.imports.meanings(plan.code(call.func).partition(".")[0], plan.function_of(call))
        ]
    named = [
        statement
        for node, statement in plan.tree.statement_of.items()
        if isinstance(node, cst.Name)
        and node.value == name
        and isinstance(plan.tree.parent.get(node), cst.Arg)
        and plan.flow.function_named(node, statement.function) is function
    ]
    return list(dict.fromkeys([*(plan.tree.statement(call) for call in calls), *named]))
