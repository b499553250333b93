"""Which expressions of one statement are evaluated behind another one of it."""

from __future__ import annotations

import libcst as cst

from dsmigrate.codemod.tree import Node, Tree, semantic_children

_EXPRESSIONS = (cst.BaseExpression, cst.Arg, cst.WithItem, cst.Decorator)
_BINDING = (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.BaseComp)


def runs_behind(tree: Tree, node: Node, first: Node) -> bool:
    """Whether an expression runs behind another one of its statement: it takes its value, or follows it in the source.

    ``Trainer(net).fit()`` runs behind ``Trainer(net)``, as does ``main(build())`` behind ``build()``. What a statement
    binds is not said to, nor what stands in another branch of a conditional expression.
    """
    if not isinstance(node, _EXPRESSIONS) or tree.statement(node) is not tree.statement(first):
        return False
    way = {first: first}
    inner = first
    for outer in tree.ancestors(first):
        way[outer] = inner
        inner = outer
        if outer is tree.statement(first).node:
            break
    inner = node
    for outer in (node, *tree.ancestors(node)):
        if outer in way:
            return outer is not first and (outer is node or _follows(outer, inner, way[outer]))
        inner = outer
    return False


def _follows(outer: Node, node: Node, first: Node) -> bool:
    """Whether one part of an expression or statement is evaluated behind another part of it."""
    if isinstance(outer, cst.IfExp):
        return first is outer.test
    if isinstance(outer, _BINDING):
        return False
    parts = list(semantic_children(outer))
    return first in parts and node in parts and parts.index(first) < parts.index(node)
