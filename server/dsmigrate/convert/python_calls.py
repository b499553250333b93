"""Calls in a script with the arguments that they write out; nothing is run."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from dsmigrate.convert.model import ConvertError, Place
from dsmigrate.document.numbers import spelled
from dsmigrate.document.positions import LineIndex
from dsmigrate.files.syntax import last_name, parse
from dsmigrate.files.text import SourceError


class _Expression:
    def __repr__(self) -> str:
        return "EXPRESSION"


EXPRESSION = _Expression()
"""The value of an argument that is no literal."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument by name: its value or EXPRESSION, its text, its place."""

    name: str
    value: Any
    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Call:
    """A call: the last part of the name it is called by, offsets from that name to behind the closing bracket.

    ``is_whole`` is False where something is unpacked into it, so that there may be more arguments.
    """

    name: str
    start: int
    end: int
    arguments: Mapping[str, Argument]
    is_whole: bool


class Script:
    """A script, parsed once."""

    def __init__(self, text: str) -> None:
        """Parse ``text``; raises ConvertError with the line for text that is not Python."""
        self.text = text
        self._lines = LineIndex(text)
        self._calls: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Call]] = {}
        try:
            self.tree = parse(text)
        except SourceError as error:
            raise ConvertError(error.message, error.line, 1) from None

    def calls(self, *names: str, positional: tuple[str, ...] = ()) -> list[Call]:
        """Return the calls of a name, in order; ``positional`` names the arguments that are given without a name."""
        if (names, positional) not in self._calls:
            found = [node for node in self._every_call if last_name(node.func) in names]
            self._calls[names, positional] = [self._call(node, positional) for node in found]
        return self._calls[names, positional]

    def calls_with(self, argument: str) -> list[Call]:
        """Return the calls that give an argument by this name, in order."""
        found = [node for node in self._every_call if any(keyword.arg == argument for keyword in node.keywords)]
        return [self._call(node, ()) for node in found]

    def line_of(self, call: Call) -> int:
        """Return the line, from 1, that a call begins on."""
        return self._lines.line_of(call.start) + 1

    def on_line(self, calls: list[Call], line: int) -> list[Call]:
        """Return those of some calls, which are in order, that begin on a line, from 1."""
        low, high = (bisect_left(calls, line + more, key=self.line_of) for more in (0, 1))
        return calls[low:high]

    def value_start(self, place: Place) -> int:
        """Return where the value of an argument is written: itself, or what its name stands for in this script."""
        text = self.text[place.start : place.end]
        return self._assigned.get(text, place.start)

    @cached_property
    def classes(self) -> frozenset[str]:
        """The names of the classes that the script defines."""
        return frozenset(node.name for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))

    @cached_property
    def _every_call(self) -> list[ast.Call]:
        found = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))

    @cached_property
    def _assigned(self) -> dict[str, int]:
        """Return where the value of each name that is assigned once stands."""
        found: dict[str, int] = {}
        twice: set[str] = set()
        for node in ast.walk(self.tree):
            targets = node.targets if isinstance(node, ast.Assign) else []
            for target in targets:
                if isinstance(target, ast.Name) and isinstance(node, ast.Assign):
                    if target.id in found:
                        twice.add(target.id)
                    found[target.id] = self._offset(node.value.lineno, node.value.col_offset)
        return {name: start for name, start in found.items() if name not in twice}

    def _call(self, node: ast.Call, positional: tuple[str, ...]) -> Call:
        arguments: dict[str, Argument] = {}
        is_whole = not any(keyword.arg is None for keyword in node.keywords)
        for index, value in enumerate(node.args):
            if isinstance(value, ast.Starred) or index >= len(positional):
                is_whole = False
                break
            start, end = self._span(value)
            arguments[positional[index]] = self._argument(positional[index], value, Place(start, end, start, end))
        for keyword in node.keywords:
            if keyword.arg is not None:
                start, end = self._span(keyword.value)
                key = self._offset(keyword.lineno, keyword.col_offset)
                place = Place(key, key + len(keyword.arg), start, end)
                arguments[keyword.arg] = self._argument(keyword.arg, keyword.value, place)
        start, end = self._span(node)
        return Call(last_name(node.func), start, end, arguments, is_whole)

    def _argument(self, name: str, value: ast.expr, place: Place) -> Argument:
        text = self.text[place.start : place.end]
        return Argument(name, spelled(_literal(value), text), text, place)

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None  # noqa: S101 - a parsed node has an end
        assert node.end_col_offset is not None  # noqa: S101
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        """Return the offset in code points of what ``ast`` counts in lines from 1 and bytes of UTF-8."""
        start, end = self._lines.line_range(line - 1)
        head = self.text[start:end].encode("utf-8", "surrogatepass")[:column]
        return start + len(head.decode("utf-8", "ignore"))


@lru_cache(maxsize=2)
def script_of(text: str) -> Script:
    """Return a script, parsed once for those who ask about each call of it in turn; raises ConvertError."""
    return Script(text)


def _literal(node: ast.expr) -> Any:  # noqa: ANN401 - any literal
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return EXPRESSION
    plain = value is None or isinstance(value, (bool, int, float, str, list, tuple, dict))
    return value if plain else EXPRESSION
