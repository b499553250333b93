"""The nodes of LibCST for nodes of the syntax tree: statements by their place, expressions by their order in a statement.

Both trees list what is of one kind in the order of the text, so that the third call of a statement is the third call of
it in the other tree; positions are not needed, which cost LibCST more than to parse.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import libcst as cst

CstStatement = cst.BaseSmallStatement | cst.BaseCompoundStatement

_KINDS: dict[type[ast.AST], type[cst.CSTNode]] = {
    ast.Call: cst.Call,
    ast.Attribute: cst.Attribute,
    ast.Name: cst.Name,
    ast.Subscript: cst.Subscript,
    ast.IfExp: cst.IfExp,
    ast.Compare: cst.Comparison,
    ast.UnaryOp: cst.UnaryOperation,
    ast.BinOp: cst.BinaryOperation,
    ast.Dict: cst.Dict,
    ast.List: cst.List,
    ast.Tuple: cst.Tuple,
    ast.Lambda: cst.Lambda,
    ast.JoinedStr: cst.FormattedString,
}


def statements(python: Sequence[ast.stmt], tree: cst.CSTNode) -> Iterator[tuple[ast.stmt, cst.CSTNode, CstStatement]]:
    """Every statement of a body with its line (the statement itself where it is compound) and its node."""
    lines = _lines(tree)
    if sum(len(small) for _, small in lines) != len(python):
        raise ValueError("the trees differ")
    found = iter(python)
    for line, small in lines:
        for node in small:
            statement = next(found)
            yield statement, line, node
            for inner, body in _bodies(statement, node):
                yield from statements(inner, body)


def _lines(tree: cst.CSTNode) -> list[tuple[cst.CSTNode, list[CstStatement]]]:
    body = tree.body if isinstance(tree, cst.Module | cst.IndentedBlock | cst.SimpleStatementSuite) else ()
    if isinstance(tree, cst.SimpleStatementSuite):
        return [(tree, list(tree.body))]
    return [
        (line, list(line.body)) if isinstance(line, cst.SimpleStatementLine) else (line, [line])  # type: ignore[list-item]
        for line in body
    ]


def _bodies(python: ast.stmt, node: CstStatement) -> Iterator[tuple[Sequence[ast.stmt], cst.CSTNode]]:
    """The bodies of a compound statement in both trees."""
    match python, node:
        case ast.If(), cst.If():
            yield python.body, node.body
            orelse = node.orelse
            if isinstance(orelse, cst.If):
                inner = python.orelse[0]
                yield from _bodies(inner, orelse)
            elif orelse is not None:
                yield python.orelse, orelse.body
        case ((ast.For() | ast.AsyncFor() | ast.While()), (cst.For() | cst.While())):
            yield python.body, node.body
            if node.orelse is not None:
                yield python.orelse, node.orelse.body
        case ast.Try(), (cst.Try() | cst.TryStar()):
            yield python.body, node.body
            handlers: Sequence[cst.ExceptHandler | cst.ExceptStarHandler] = node.handlers
            for handler, other in zip(python.handlers, handlers, strict=True):
                yield handler.body, other.body
            if node.orelse is not None:
                yield python.orelse, node.orelse.body
            if node.finalbody is not None:
                yield python.finalbody, node.finalbody.body
        case ((ast.With() | ast.AsyncWith() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef()), _):
            yield python.body, node.body  # type: ignore[union-attr]
        case ast.Match(), cst.Match():
            for case, other_case in zip(python.cases, node.cases, strict=True):
                yield case.body, other_case.body


def elif_nodes(python: ast.stmt, node: CstStatement) -> Iterator[tuple[ast.stmt, cst.If]]:
    """The ``elif`` of an ``if``, each with its node; in the syntax tree they are statements of their own."""
    while isinstance(python, ast.If) and isinstance(node, cst.If) and isinstance(node.orelse, cst.If):
        python, node = python.orelse[0], node.orelse
        yield python, node


def expression(wanted: ast.expr, statement: ast.stmt, node: CstStatement) -> cst.CSTNode:
    """The node of an expression of a statement; raises KeyError for a kind that is not looked for."""
    if isinstance(wanted, ast.BoolOp):
        roots = [one for one in _walk_text(node) if isinstance(one, cst.BooleanOperation)]
        chains = _chains(roots)
        order = [one for one in _python_order(statement) if isinstance(one, ast.BoolOp)]
        return chains[order.index(wanted)]
    kind = _KINDS.get(type(wanted))
    if kind is None:
        return _constant(wanted, statement, node)
    order_python = [one for one in _python_order(statement) if type(one) is type(wanted)]
    order_cst = [one for one in _walk_text(node) if isinstance(one, kind) and not _is_constant(one)]
    if len(order_python) != len(order_cst):
        raise KeyError(wanted)
    return order_cst[order_python.index(wanted)]


def _is_constant(node: cst.CSTNode) -> bool:
    """Whether a name is a constant in the syntax tree."""
    return isinstance(node, cst.Name) and node.value in {"True", "False", "None"}


def _constant(wanted: ast.expr, statement: ast.stmt, node: CstStatement) -> cst.CSTNode:
    if not isinstance(wanted, ast.Constant) or not isinstance(wanted.value, str | int | float | None):
        raise KeyError(wanted)
    if isinstance(wanted.value, bool | None):
        same = [one for one in _python_order(statement) if isinstance(one, ast.Constant) and one.value is wanted.value]
        named = [one for one in _walk_text(node) if isinstance(one, cst.Name) and one.value == str(wanted.value)]
        if len(same) != len(named):
            raise KeyError(wanted)
        return named[same.index(wanted)]
    is_text = isinstance(wanted.value, str)
    kinds = (cst.SimpleString, cst.ConcatenatedString) if is_text else (cst.Integer, cst.Float)
    order = [
        one
        for one in _python_order(statement)
        if isinstance(one, ast.Constant)
        and not isinstance(one.value, bool)
        and isinstance(one.value, str if is_text else int | float)
    ]
    found = [one for one in _walk_text(node) if isinstance(one, kinds)]
    if len(order) != len(found):
        raise KeyError(wanted)
    return found[order.index(wanted)]


def _chains(found: list[cst.BooleanOperation]) -> list[cst.BooleanOperation]:
    """Those of nested ``a and b and c`` that are an operation of their own in the syntax tree."""
    inside: set[int] = set()
    for one in found:
        left = one.left
        if isinstance(left, cst.BooleanOperation) and not left.lpar and type(left.operator) is type(one.operator):
            inside.add(id(left))
    return [one for one in found if id(one) not in inside]


def _python_order(node: ast.AST) -> list[ast.expr]:
    """The expressions of a statement's own lines, in the order of the text, outer before inner."""
    found: list[ast.expr] = []
    for child in _children(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            continue
        if isinstance(child, ast.expr) and not isinstance(child, ast.FormattedValue):
            found.append(child)
        found += _python_order(child)
    return found


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The children of a node in the order of the text."""
    match node:
        case ast.Call():
            yield node.func
            yield from sorted(
                [*node.args, *(keyword.value for keyword in node.keywords)],
                key=lambda one: (one.lineno, one.col_offset),
            )
        case ast.Dict():
            for key, value in zip(node.keys, node.values, strict=True):
                if key is not None:
                    yield key
                yield value
        case ast.IfExp():
            yield from (node.body, node.test, node.orelse)
        case ast.JoinedStr() | ast.Constant():
            yield from (part for part in getattr(node, "values", ()) if isinstance(part, ast.FormattedValue))
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from node.decorator_list
            yield node.args
            if node.returns is not None:
                yield node.returns
        case ast.ClassDef():
            yield from node.decorator_list
            yield from node.bases
            yield from (keyword.value for keyword in node.keywords)
        case ast.arguments():
            positional = [*node.posonlyargs, *node.args]
            defaults = [None] * (len(positional) - len(node.defaults)) + list(node.defaults)
            for arg, default in zip(positional, defaults, strict=True):
                yield arg
                if default is not None:
                    yield default
            if node.vararg is not None:
                yield node.vararg
            for arg, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
                yield arg
                if default is not None:
                    yield default
            if node.kwarg is not None:
                yield node.kwarg
        case ast.Assign():
            yield from node.targets
            yield node.value
        case ast.AnnAssign():
            yield node.target
            yield node.annotation
            if node.value is not None:
                yield node.value
        case ast.DictComp():
            yield from (node.key, node.value, *node.generators)
        case _:
            yield from ast.iter_child_nodes(node)


def _walk_text(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes of a statement's own lines, in the order of the text, outer before inner.

    Names that only name a member, an argument or a parameter are no expressions.
    """
    yield node
    if isinstance(node, cst.Attribute):
        yield from _walk_text(node.value)
        return
    if isinstance(node, cst.Arg):
        yield from _walk_text(node.value)
        return
    if isinstance(node, cst.Param):
        for part in (node.annotation, node.default):
            if part is not None:
                yield from _walk_text(part)
        return
    if isinstance(node, cst.FunctionDef | cst.ClassDef):
        for part in (
            *node.decorators,
            *((node.params, node.returns) if isinstance(node, cst.FunctionDef) else (*node.bases, *node.keywords)),
        ):
            if part is not None:
                yield from _walk_text(part)
        return
    if isinstance(node, cst.Import | cst.ImportFrom | cst.Global | cst.Nonlocal):
        return
    for child in node.children:
        if isinstance(child, cst.BaseSuite | cst.Else | cst.Finally | cst.ExceptHandler | cst.MatchCase):
            continue
        if isinstance(child, cst.If) and isinstance(node, cst.If):
            continue
        yield from _walk_text(child)
