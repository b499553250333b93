"""Whether what an expression reads gets another value once the engine is there: what is filled in the config is read once."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from dsmigrate.codemod.flow import Place
from dsmigrate.codemod.names import assigned_to, dotted
from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.tree import Function, Node, Statement, descendants

_MUTATORS = frozenset({"append", "appendleft", "extend", "insert", "pop", "popleft", "clear", "remove"})


@dataclass(slots=True)
class _Writes:
    """Places, and source texts of items, with the statements that change them."""

    places: dict[Place, list[Statement]] = field(default_factory=dict)
    items: dict[str, list[Statement]] = field(default_factory=dict)


def changes_later(plan: Plan, node: Node, function: Function) -> list[Statement]:
    """The statements that may change a variable, attribute or item of an expression after the engine was made.

    The learning rate of an optimizer is among what changes, whoever writes it; a plain name that is bound anew is not
    looked for here.
    """
    writes: _Writes | None = plan.facts.get("writes")
    if writes is None:
        writes = plan.facts["writes"] = _collected(plan)
    found: list[Statement] = []
    for sub in descendants(node):
        if isinstance(sub, cst.Subscript):
            found += writes.items.get(plan.code(sub), ())
        if isinstance(sub, cst.Name | cst.Attribute | cst.Subscript):
            place = plan.flow.place(sub, function)
            found += writes.places.get(place, ()) if place is not None else ()
    return [statement for statement in found if not plan.is_before_engine(statement.node)]


def reads_groups(node: Node) -> bool:
    """Whether an expression reads ``optimizer.param_groups``, which a schedule writes."""
    return any(isinstance(sub, cst.Attribute) and sub.attr.value == "param_groups" for sub in descendants(node))


def _collected(plan: Plan) -> _Writes:
    writes = _Writes()
    for statement in plan.tree.statements:
        node = statement.node
        if isinstance(node, cst.AugAssign):
            _note(plan, writes, node.target, statement)
        elif isinstance(node, cst.Assign | cst.AnnAssign) and node.value is not None:
            for target in assigned_to(node):
                if not isinstance(target, cst.Name) and not _makes(target, statement):
                    _note(plan, writes, target, statement)
        elif isinstance(node, cst.Global):
            for item in node.names:
                for other in statement.function.statements:
                    if any(dotted(target) == item.name.value for target in assigned_to(other.node)):
                        _note(plan, writes, item.name, other)
        elif isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
            func = node.value.func
            if isinstance(func, cst.Attribute) and func.attr.value in _MUTATORS and isinstance(func.value, cst.Name):
                _note(plan, writes, func.value, statement)
    return writes


def _makes(target: Node, statement: Statement) -> bool:
    """Whether an object gets an attribute for the first time."""
    function = statement.function
    return (
        function.name == "__init__" and isinstance(target, cst.Attribute) and dotted(target.value) == function.self_name
    )


def _note(plan: Plan, writes: _Writes, target: Node, statement: Statement) -> None:
    if isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            if not isinstance(element.value, cst.Name):
                _note(plan, writes, element.value, statement)
        return
    if isinstance(target, cst.Subscript):
        writes.items.setdefault(plan.code(target), []).append(statement)
    place = plan.flow.place(target, statement.function)
    if place is not None:
        writes.places.setdefault(place, []).append(statement)
