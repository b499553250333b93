"""Whether an optimizer owns a part of the model only: some of its modules, or the parameters that pass a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.roles import OptimizerSite
from dsmigrate.codemod.steps.made_parameters import made_parameters
from dsmigrate.codemod.steps.owned import belongs, pieces_of
from dsmigrate.codemod.steps.picked import ANYTHING, either, outcomes
from dsmigrate.codemod.steps.shares import Share, called_of_model, shares_of
from dsmigrate.codemod.steps.sites import short
from dsmigrate.codemod.tree import Node, Statement, descendants

_DEPTH = 3
_SHAPE = frozenset({"ndim", "dim", "shape", "size"})


@dataclass(frozen=True, slots=True)
class Owned:
    """What an optimizer owns, in words, and whether that is surely less than the model."""

    text: str
    is_sure: bool


def owned_part(plan: Plan, site: OptimizerSite) -> Owned | None:
    """What an optimizer owns where that may be less than the model; None where it is all of it, or nothing is known."""
    given = list(_given(plan, site.call, site.statement, _DEPTH)) if site.call is not None else []
    if not given:
        return None
    shares = [share for params, where in given for share in shares_of(plan, params, where)]
    shares += _added_groups(plan)
    formula = either(*(share.formula for share in shares if share.formula is not None))
    made = made_parameters(plan)
    if outcomes(formula, ANYTHING) == {True} or (made and all(outcomes(formula, one) == {True} for one in made)):
        return None
    part = _sole_part(plan, site) if len(shares) == 1 else None
    if part is not None:
        return Owned(part, is_sure=True)
    texts = short(", ".join(dict.fromkeys(share.text for share in shares)))
    if all(share.formula is not None for share in shares):
        left_out = next((one.name for one in made or () if one.is_whole and outcomes(formula, one) == {False}), None)
        return Owned(texts if left_out is None else f"{texts} (not {left_out})", is_sure=left_out is not None)
    return Owned(texts, is_sure=False) if any(share.formula is not None for share in shares) else None


def _given(plan: Plan, call: cst.Call, where: Statement, depth: int) -> Iterator[tuple[Node, Statement]]:
    """The first argument of an optimizer's class, also where a function of the script makes the object."""
    callee = called_of_model(plan, call)
    params = argument(call, 0, "params")
    if callee is None or callee.name == "__init__":
        yield from ((params, where),) if params is not None else ()
        return
    for binding in plan.flow.by_place.get(plan.flow.returned(callee), ()):
        place = plan.flow.place(binding.value, binding.function) if isinstance(binding.value, cst.Name) else None
        made = [binding] if place is None else plan.flow.by_place.get(place, [])
        for one in made if depth else ():
            if isinstance(one.value, cst.Call):
                yield from _given(plan, one.value, one.statement, depth - 1)


def _added_groups(plan: Plan) -> list[Share]:
    calls = [call for call in plan.tree.calls if isinstance(call.func, cst.Attribute) and call.args]
    return [
        share
        for call in calls
        if call.func.attr.value == "add_param_group"  # type: ignore[attr-defined]
        for share in shares_of(plan, call.args[0].value, plan.tree.statement(call))
    ]


def _sole_part(plan: Plan, site: OptimizerSite) -> str | None:
    """What an optimizer owns, in words, where that is one part of the model and nothing else."""
    params = argument(site.call, 0, "params") if site.call is not None else None
    pieces = list(pieces_of(plan, params, site.statement)) if params is not None else []
    if len(pieces) != 1:
        return None
    piece, where = pieces[0]
    if isinstance(piece, cst.Call) and isinstance(piece.func, cst.Attribute) and piece.func.attr.value == "parameters":
        owner = piece.func.value
        return short(plan.code(owner)) if _is_part(plan, owner, where) else None
    test = _picked_by(plan, piece, where)
    return f"what passes `{short(plan.code(test))}`" if test is not None else None


def _is_part(plan: Plan, owner: Node, where: Statement) -> bool:
    """``model.head``, ``model.module[2]``, or a name for such a part."""
    if isinstance(owner, cst.Name):
        place = plan.flow.place(owner, where.function)
        bindings = plan.flow.by_place.get(place, ()) if place is not None else ()
        if len(bindings) != 1 or bindings[0].kind != "assign" or bindings[0].index is not None:
            return False
        owner, where = bindings[0].value, bindings[0].statement
    if not isinstance(owner, cst.Attribute | cst.Subscript) or plan.is_ours(owner):
        return False
    return belongs(plan, owner, where)


def _picked_by(plan: Plan, piece: Node, where: Statement) -> Node | None:
    """The test of a comprehension, or of a loop around ``append(p)``, that picks parameters by their name or shape."""
    if isinstance(piece, cst.ListComp | cst.GeneratorExp):
        inner = piece.for_in
        if inner.inner_for_in is not None:
            return None
        return _picking(plan, inner.target, inner.iter, [test.test for test in inner.ifs])
    tests: list[Node] = []
    for outer in where.enclosing() if isinstance(piece, cst.Name) else ():
        if isinstance(outer.node, cst.If):
            tests.append(outer.node.test)
        elif isinstance(outer.node, cst.For):
            return _picking(plan, outer.node.target, outer.node.iter, tests)
    return None


def _picking(plan: Plan, target: Node, iterable: Node, tests: Sequence[Node]) -> Node | None:
    func = iterable.func if isinstance(iterable, cst.Call) else None
    if not isinstance(func, cst.Attribute) or not plan.is_ours(func.value):
        return None
    named = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else [target]
    if func.attr.value not in ("parameters", "named_parameters") or not all(isinstance(one, cst.Name) for one in named):
        return None
    name = dotted(named[0]) if len(named) > 1 else None
    shapes = {f"{dotted(named[-1])}.{word}" for word in _SHAPE}
    for test in tests:
        words = {dotted(sub) for sub in descendants(test) if isinstance(sub, cst.Name | cst.Attribute)}
        if (name is not None and name in words) or words & shapes:
            return test
    return None
