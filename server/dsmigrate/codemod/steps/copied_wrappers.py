"""MG506: copies and averages that were made of the wrapper are those of the plain model; one ``.module`` less leads to it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.flow import Place
from dsmigrate.codemod.names import dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.prefixed import DEPTH, is_wrapped
from dsmigrate.codemod.steps.unwrap import AVERAGE
from dsmigrate.codemod.tree import Node, Statement

_KEYED = frozenset({"state_dict", "load_state_dict"})


def run(plan: Plan) -> None:
    """Take away the ``.module`` of DDP in copies, and keep its prefix in the names of their weights."""
    copied, averaged = _places(plan)
    if not copied and not averaged:
        return
    for node, statement in list(plan.tree.statement_of.items()):
        if not isinstance(node, cst.Attribute) or not isinstance(plan.tree.parent.get(node), cst.CSTNode):
            continue
        base = node.value
        if node.attr.value == "module" and _is_copy(plan, base, copied, averaged):
            _shorten(plan, node, statement)
        elif node.attr.value in _KEYED and isinstance(plan.tree.parent[node], cst.Call):
            _keyed(plan, node, statement, copied, averaged)


def _is_copy(plan: Plan, node: Node, copied: set[Place], averaged: set[Place]) -> bool:
    """Whether an expression is the copy of the wrapper: a deepcopy itself, or what an averaging object holds."""
    if plan.place_of(node) in copied:
        return True
    return isinstance(node, cst.Attribute) and node.attr.value == "module" and plan.place_of(node.value) in averaged


def _shorten(plan: Plan, node: cst.Attribute, statement: Statement) -> None:
    if node in plan.edits.expressions:
        return
    plan.edits.replace(node, lambda updated: updated.value)  # type: ignore[attr-defined]
    plan.handled.add(node)
    plan.converted(
        "MG506", statement, f"{plan.code(node)} → {plan.code(node.value)}", "the copy is one of the plain model now"
    )


def _keyed(plan: Plan, func: cst.Attribute, statement: Statement, copied: set[Place], averaged: set[Place]) -> None:
    text = plan.code(func.value)
    if _is_copy(plan, func.value, copied, averaged):
        if func.value not in plan.edits.expressions:
            plan.need("torch")
            plan.edits.replace(func.value, f'torch.nn.ModuleDict({{"module": {text}}})')
            plan.converted("MG508", statement, f"{text}.{func.attr.value} keeps the prefix 'module.'",
                           "the copy was one of the wrapper")  # fmt: skip
    elif plan.place_of(func.value) in averaged:
        plan.kept("MG508", statement, f"the names in {text}.{func.attr.value} have one 'module.' less than those of the original's files",
                  "the average was one of the wrapper, and is one of the plain model now")  # fmt: skip


def _places(plan: Plan) -> tuple[set[Place], set[Place]]:
    """Variables and attributes that hold a copy of the wrapper, and those that hold an object with one in ``.module``."""
    made = dict(_made(plan))
    names = {place: (dotted(call.func) or "").rpartition(".")[2] for place, call in made.items()}
    copied = {place for place, name in names.items() if name == "deepcopy"}
    averaged = {
        place
        for place, name in names.items()
        if name[:1].isupper() and AVERAGE.search(name) and plan.flow.callee(made[place]) is None
    }
    return _with_followers(plan, copied), _with_followers(plan, averaged)


def _with_followers(plan: Plan, places: set[Place]) -> set[Place]:
    """These places, as far as they get nothing else, with the variables and parameters that are given them."""
    found = {place for place in places if _only(plan, place, places)}
    while more := {p for p in plan.flow.by_place if p not in found and _only(plan, p, found)} if found else set():
        found |= more
    return found


def _made(plan: Plan) -> Iterator[tuple[Place, cst.Call]]:
    for binding in plan.flow.bindings:
        call = binding.value
        if binding.kind != "assign" or binding.index is not None or not isinstance(call, cst.Call):
            continue
        model = call.args[0].value if call.args and not call.args[0].star else None
        if not isinstance(model, cst.Name | cst.Attribute) or not plan.is_ours(model):
            continue
        if plan.is_engine(model) or is_wrapped(plan, model, binding.statement, DEPTH):
            yield binding.place, call


def _only(plan: Plan, place: Place, group: set[Place]) -> bool:
    """Whether a place gets nothing but such copies (or None)."""
    made = {id(call) for _, call in _made_at(plan, place)}
    values = [b for b in plan.flow.by_place.get(place, ()) if dotted(b.value) != "None"]
    return bool(values) and all(
        b.index is None and b.kind in ("assign", "argument")
        and (id(b.value) in made or plan.flow.place(b.value, b.function) in group - {place})
        for b in values
    )  # fmt: skip


def _made_at(plan: Plan, place: Place) -> list[tuple[Place, cst.Call]]:
    found: list[tuple[Place, cst.Call]] | None = plan.facts.get("copied_wrappers")
    if found is None:
        found = list(_made(plan))
        plan.facts["copied_wrappers"] = found
    return [one for one in found if one[0] == place]
