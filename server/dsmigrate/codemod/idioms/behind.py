"""Lines that take a value from the engine behind its step, where the script worked it out before."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from dsmigrate.codemod.analysis.events import Event
from dsmigrate.codemod.program.edits import Edit, Insert, Remove, ReplaceStatement, Template
from dsmigrate.codemod.program.module import Module, Step

_LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Raise)


@dataclass(frozen=True, slots=True)
class Measured:
    """A statement ``target = …`` before a step, whose value the engine gives behind it."""

    module: Module
    node: ast.Assign
    target: str


def behind_step(
    measured: list[Measured], step: Event, engine: str, value: str, *, quiet: bool
) -> tuple[Edit, ...] | None:
    """Take ``value`` behind the step, under the tests that the statements were under; None where it is needed before.

    ``quiet``: nothing between the statements and the step has to do with the training.
    """
    module = step.module
    if (
        not measured
        or any(one.module is not module for one in measured)
        or not isinstance(module.step(step.node).node, ast.Expr)
    ):
        return None
    place = module.step(step.node)
    edits: list[Edit] = []
    for one in measured:
        found = _behind(one, place, module)
        if found is None and quiet:
            return _step_before(measured, place, module, engine, value)
        if found is None:
            return None
        edits.append(Remove(module, one.node))
    for target, tests in _together(measured, place, module).items():
        line: Template = (f"{target} = {value}",)
        if not tests:
            edits.append(Insert(module, place.node, (line,), after=True))
        edits += [Insert(module, place.node, (("if ", *test, ":"), ("    ", *line)), after=True) for test in tests]
    return tuple(edits)


def _behind(one: Measured, place: Step, module: Module) -> list[Step] | None:
    """The tests between a statement and the body of the step; None where its value is looked at before the step."""
    around: list[Step] = []
    step = module.step(one.node)
    while step.body is not place.body:
        if (
            any(_reads(later, one.target) for later in step.body[step.index + 1 :])
            or step.up is None
            or not isinstance(step.up.node, ast.If)
        ):
            return None
        step = step.up
        around.append(step)
    between = step.body[step.index + 1 : place.index]
    return None if place.index < step.index or any(_reads(later, one.target) for later in between) else around


def _together(measured: list[Measured], place: Step, module: Module) -> dict[str, list[Template]]:
    """The tests under which each target is written; none where both arms of an ``if`` do."""
    found: dict[str, dict[tuple[ast.If, bool], Measured]] = {}
    for one in measured:
        around = _behind(one, place, module)
        arms = found.setdefault(one.target, {})
        for outer in around or ():
            assert isinstance(outer.node, ast.If)
            arms[outer.node, any(one.node in ast.walk(inner) for inner in outer.node.body)] = one
    return {
        target: []
        if any((node, not is_body) in arms for node, is_body in arms)
        else [(node.test,) if is_body else _opposite(node.test) for node, is_body in arms]
        for target, arms in found.items()
    }


_OPPOSITES = {ast.Is: " is not ", ast.IsNot: " is ", ast.Eq: " != ", ast.NotEq: " == "}


def _opposite(test: ast.expr) -> Template:
    """A test that comes out the other way."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return (operand,)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPPOSITES:
            return (left, _OPPOSITES[type(op)], right)
    return ("not (", test, ")")


def _step_before(
    measured: list[Measured], place: Step, module: Module, engine: str, value: str
) -> tuple[Edit, ...] | None:
    """The step goes where the value was worked out first: what stands between the two looks at it."""
    steps = sorted((module.step(one.node) for one in measured), key=lambda step: step.index)
    between = place.body[steps[0].index + 1 : place.index]
    if any(step.body is not place.body or step.index > place.index for step in steps):
        return None
    if any(isinstance(sub, _LEAVES) for later in between for sub in ast.walk(later)):
        return None
    first, *others = sorted(measured, key=lambda one: module.step(one.node).index)
    return (
        ReplaceStatement(module, first.node, ((f"{engine}.step()",), (f"{first.target} = {value}",))),
        *(ReplaceStatement(module, one.node, ((f"{one.target} = {value}",),)) for one in others),
        Remove(module, place.node),
    )


def _reads(node: ast.AST, target: str) -> bool:
    return any(
        isinstance(sub, ast.Name | ast.Attribute) and ast.unparse(sub) == target and isinstance(sub.ctx, ast.Load)
        for sub in ast.walk(node)
    )
