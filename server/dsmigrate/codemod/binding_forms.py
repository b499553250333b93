"""Forms in which values come to their names: branches of an expression, walruses, methods that subclasses stand for."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from dsmigrate.codemod.role_names import PASS_METHODS
from dsmigrate.codemod.tree import Function, Node, semantic_children


def is_abstract(function: Function) -> bool:
    """Whether a method only stands for what subclasses do: nothing but a docstring, ``pass`` or ``raise``."""
    return bool(function.statements) and all(
        isinstance(s.node, cst.Pass | cst.Raise)
        or (isinstance(s.node, cst.Expr) and isinstance(s.node.value, cst.SimpleString | cst.Ellipsis))
        for s in function.statements
    )


def calls_in_branches(value: Node) -> list[cst.Call]:
    """The calls that a value may come from: itself, the branches of ``a() if test else None``, ``a()`` in ``a().to(x)``."""
    if isinstance(value, cst.IfExp):
        return [*calls_in_branches(value.body), *calls_in_branches(value.orelse)]
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value in PASS_METHODS:
        if isinstance(value.func.value, cst.Call):
            return calls_in_branches(value.func.value)
    return [value] if isinstance(value, cst.Call) else []


def named_expressions(node: Node) -> Iterator[cst.NamedExpr]:
    """The ``name := value`` in a statement; of a compound one only those in its test."""
    if isinstance(node, cst.BaseCompoundStatement):
        heads = [getattr(node, "test", None)]
        for head in heads:
            if head is not None:
                yield from _walrus(head)
        return
    yield from _walrus(node)


def _walrus(node: Node) -> Iterator[cst.NamedExpr]:
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, cst.NamedExpr):
            yield current
        stack.extend(semantic_children(current))
