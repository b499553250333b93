"""Moves the import of DeepSpeed from the head of a module into the functions that use it. Works on texts."""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.files import syntax

NAME = "deepspeed"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Lazily:
    """A module that imports DeepSpeed where it is used; ``names`` are the top-level definitions that do."""

    text: str
    names: tuple[str, ...]


def imports_at_head(text: str) -> bool:
    """Whether the import of a module imports DeepSpeed with it, by a plain statement of its own."""
    return (
        any(line.startswith("import deepspeed") for line in text.splitlines())
        and _at_head(syntax.parse(text)) is not None
    )


def lazily(text: str, newline: str) -> Lazily | None:
    """The module with the import inside of the functions that use it; None where more than functions do."""
    tree = syntax.parse(text)
    head = _at_head(tree)
    if head is None:
        return None
    users = {node: [f for f in _functions(node) if _uses(f)] for node in tree.body}
    inside = sum(_uses(part) for found in users.values() for function in found for part in function.body)
    if inside != _uses(tree) or any(
        function.body[0].lineno == function.lineno for f in users.values() for function in f
    ):
        return None
    lines = list(io.StringIO(text, newline=""))  # as the parser counts lines
    for function in sorted((f for found in users.values() for f in found), key=lambda f: -f.lineno):
        line = _line_of_body(function, lines)
        lines.insert(line, f"{' ' * function.body[0].col_offset}import {NAME}{newline}")
    del lines[head.lineno - 1]
    if 0 < head.lineno - 1 < len(lines) and not lines[head.lineno - 2].strip() and not lines[head.lineno - 1].strip():
        del lines[head.lineno - 1]  # it was a block of its own
    return Lazily(
        "".join(lines), tuple(node.name for node, found in users.items() if found and isinstance(node, _Named))
    )


_Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _at_head(tree: ast.Module) -> ast.Import | None:
    for node in tree.body:
        if isinstance(node, ast.Import) and [(a.name, a.asname) for a in node.names] == [(NAME, None)]:
            return node
    return None


def _functions(node: ast.AST) -> Iterator[Function]:
    """The outermost functions of a statement, methods among them."""
    if isinstance(node, Function):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _functions(child)


def _uses(node: ast.AST) -> int:
    """How often a node names DeepSpeed; decorators, defaults and the like of a function are counted with it."""
    return sum(isinstance(sub, ast.Name) and sub.id == NAME for sub in ast.walk(node))


def _line_of_body(function: Function, lines: list[str]) -> int:
    """The index of the line where the body begins, behind a docstring and above comments."""
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        return int(first.end_lineno or first.lineno)
    marks: list[int] = [decorator.lineno for decorator in getattr(first, "decorator_list", ())]
    line = min([first.lineno, *marks]) - 1
    while not lines[line - 1].strip() or lines[line - 1].lstrip().startswith("#"):
        line -= 1
    return line
