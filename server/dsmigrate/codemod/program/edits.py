"""Edits of a file, said of its syntax tree: what is put in the place of a node, before or after a statement."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TypeAlias

from dsmigrate.codemod.program.module import Module

Template: TypeAlias = "tuple[str | ast.expr, ...]"
"""Code in pieces: text, and nodes of the file that stand there as they are after their own edits."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit of ``module``, of or at ``node``. ``guard``: a test under which it holds; otherwise all stays as it was."""

    module: Module
    node: ast.AST
    guard: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class Replace(Edit):
    """An expression becomes another one."""

    code: Template


@dataclass(frozen=True, slots=True)
class Remove(Edit):
    """A statement goes. ``keep``: sub-expressions of it that have to be worked out all the same."""

    keep: tuple[ast.expr, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplaceStatement(Edit):
    """A statement becomes others."""

    code: tuple[Template, ...]


@dataclass(frozen=True, slots=True)
class Unwrap(Edit):
    """A ``with``, ``if`` or ``else`` goes, what is in it stays; of an ``if`` the arm that ``arm`` names."""

    arm: str = "body"


@dataclass(frozen=True, slots=True)
class Enclose(Edit):
    """A statement goes into a block of its own: ``header`` is its first line, with the colon."""

    header: str


@dataclass(frozen=True, slots=True)
class Insert(Edit):
    """Statements before or after a statement, one template a line; deeper lines are indented by four blanks."""

    code: tuple[Template, ...]
    after: bool = False
    rank: int = 0
    """Which of several at one place comes first."""


@dataclass(frozen=True, slots=True)
class AddArgument(Edit):
    """A call gets another argument by name."""

    name: str
    value: Template


@dataclass(frozen=True, slots=True)
class RemoveArgument(Edit):
    """A call loses an argument: ``node`` is its value."""


@dataclass(frozen=True, slots=True)
class AddParameter(Edit):
    """A function gets another parameter, the last one that takes a name."""

    name: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Comment(Edit):
    """A comment before a statement, broken into lines where it is long."""

    text: str


@dataclass(frozen=True, slots=True)
class Import:
    """A file needs a name: ``import module``, or ``from module import name``."""

    module: Module
    source: str
    name: str = ""


def templates(edit: Edit) -> Sequence[Template]:
    """The lines of code that an edit brings."""
    match edit:
        case Replace():
            return (edit.code,)
        case ReplaceStatement() | Insert():
            return edit.code
        case AddArgument():
            return (edit.value,)
    return ()


def brings(edit: Edit, text: str) -> bool:
    """Whether the code that an edit brings, its test too, has a text; comments are not code."""
    parts: list[object] = [] if isinstance(edit, Comment) else [getattr(edit, one.name) for one in fields(edit)]
    while parts:
        part = parts.pop()
        if isinstance(part, str) and text in part:
            return True
        if isinstance(part, tuple):
            parts += part
    return False


def line_range(node: ast.AST) -> tuple[int, int]:
    """First and last line of a node."""
    first = int(getattr(node, "lineno", 1))
    return first, int(getattr(node, "end_lineno", None) or first)


def texts(code: Sequence[Template], module: Module) -> str:
    """A template as one text, with nodes as they are written."""
    return "\n".join("".join(part if isinstance(part, str) else module.text(part) for part in line) for line in code)
