"""What the code of a package says when something is wrong: the texts of its raises, assertions, warnings and logs.

A text is what a person gets to read, with ``{}`` for everything that is filled in and single spaces for white space.
"""

from __future__ import annotations

import ast
import itertools
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dsmigrate.files.syntax import last_name

PLACE = "{}"
_SAYING = frozenset({
    "critical", "error", "exception", "info", "info_rank0", "log_dist", "log_dist_once", "print", "print_rank_0",
    "warn", "warning", "warning_once", "warning_rank0",
})  # fmt: skip
_PERCENT = re.compile(r"%(?:\(\w+\))?[-+ #0]*(?:\d+|\*)?(?:\.\d+)?([sdrifgGeExXouc%])")
_LETTERS, _WORDS = 12, 2
_ALTERNATIVES = 8
"""Of a text that is put together of parts with alternatives, at most so many are told."""

Names = Mapping[str, Sequence[ast.expr]]


@dataclass(frozen=True, slots=True)
class Text:
    """A text and what says it: the name of the exception or of the function that is called."""

    text: str
    kind: str


def texts(source: str) -> Iterator[Text]:
    """Yield every text of a module that has words enough to be known again; raises SyntaxError."""
    tree = ast.parse(source)
    yield from _of_scope(tree, {})


def _of_scope(scope: ast.AST, outer: Names) -> Iterator[Text]:
    inside, nested = _parts(scope)
    names = {**outer, **_assigned(inside)}
    for node in inside:
        for kind, expression in _said(node):
            for found in _templates(expression, names, deep=2):
                text = tidy(found)
                if is_telling(text):
                    yield Text(text, kind)
    for other in nested:
        yield from _of_scope(other, names)


def _parts(scope: ast.AST) -> tuple[list[ast.AST], list[ast.AST]]:
    """Return the nodes of a scope, and the functions and classes in it."""
    inside: list[ast.AST] = []
    nested: list[ast.AST] = []
    pending = list(ast.iter_child_nodes(scope))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            nested.append(node)
        else:
            inside.append(node)
            pending += ast.iter_child_nodes(node)
    return inside, nested


def _assigned(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return found


def _said(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield what a statement or a call says, with the name of who says it."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        yield from ((last_name(node.exc.func), argument) for argument in node.exc.args)
    elif isinstance(node, ast.Assert) and node.msg is not None:
        yield "AssertionError", node.msg
    elif isinstance(node, ast.Call) and last_name(node.func) in _SAYING:
        for argument in node.args[:1]:
            filled = len(node.args) > 1 and isinstance(argument, ast.Constant | ast.JoinedStr)
            yield (
                last_name(node.func),
                ast.BinOp(argument, ast.Mod(), ast.Tuple([], ast.Load())) if filled else argument,
            )


def _templates(node: ast.expr, names: Names, deep: int) -> list[str]:
    """Return what an expression may give as text, "{}" where that is not known."""
    match node:
        case ast.Constant(value=str() as value):
            return [value.replace(PLACE, "{ }")]
        case ast.JoinedStr(values=values):
            return _product([_templates(value, names, 0) for value in values])
        case ast.BinOp(op=ast.Mod(), left=left):
            return [_PERCENT.sub(_filled, one) for one in _templates(left, names, deep)]
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _product([_templates(left, names, deep), _templates(right, names, deep)])
        case ast.IfExp(body=body, orelse=other):
            return _templates(body, names, deep) + _templates(other, names, deep)
        case ast.Call(func=ast.Attribute(attr="format", value=ast.expr() as pattern)):
            return [_format(one) for one in _templates(pattern, names, deep)]
        case ast.Name(id=name) if deep and name in names:
            return list(
                itertools.chain.from_iterable(_templates(one, names, deep - 1) for one in names[name][:_ALTERNATIVES])
            )
        case _:
            return [PLACE]


def _product(parts: Sequence[Sequence[str]]) -> list[str]:
    return ["".join(one) for one in itertools.islice(itertools.product(*parts), _ALTERNATIVES)]


def _filled(found: re.Match[str]) -> str:
    return "%" if found[1] == "%" else PLACE


def _format(pattern: str) -> str:
    try:
        parts = list(string.Formatter().parse(pattern.replace("{ }", PLACE)))
    except ValueError:
        return pattern
    return "".join(literal + (PLACE if name is not None else "") for literal, name, _, _ in parts)


def tidy(text: str) -> str:
    """Return a text with single spaces, and with one place where several follow each other."""
    return re.sub(r"\{\}(?:\s*\{\})+", PLACE, " ".join(text.split()))


def is_telling(text: str) -> bool:
    """Whether a text can be known again: it has words enough of its own."""
    words = re.findall(r"[A-Za-z]{2,}", text)
    return len(words) >= _WORDS and sum(map(len, words)) >= _LETTERS
