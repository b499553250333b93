"""Values as text to insert: plain and with tab stops, on one line and on several."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dsmigrate.document import Style
from dsmigrate.document.spelling import spell_key, spell_string
from dsmigrate.knowledge.wording import json_text

_SPECIAL = re.compile(r"[\\$}]")
Stops = Callable[[str, object], bool]
"""Whether the value of a key, given by name, is a place to type in."""


@dataclass(frozen=True, slots=True)
class Body:
    """A value as text. A line feed and tabs stand for a new line and its levels below the line it starts on."""

    plain: str
    snippet: str
    plain_line: str
    snippet_line: str
    """The two again, on one line."""
    is_open: bool = False
    """Whether it is empty and wants something to be typed in."""

    def text(self, *, snippet: bool, inline: bool, newline: str = "\n", indent: str = "", unit: str = "    ") -> str:
        """Return the text for a line that is indented by ``indent``, with levels of ``unit``."""
        if inline:
            return self.snippet_line if snippet else self.plain_line
        text = self.snippet if snippet else self.plain
        if "\n" not in text:
            return text
        return text.replace("\n", newline + indent).replace("\t", unit)


@dataclass(frozen=True, slots=True, eq=False)
class Spelling:
    """How keys are written: their quotes, and what stands between key and value. See ``spelling``."""

    style: Style = Style.DOUBLE
    colon: str = ": "
    written: dict[str, str] = field(default_factory=dict)
    """The keys that were asked for."""

    def key(self, name: str) -> str:
        """Return the text of a key."""
        found = self.written.get(name)
        if found is None:
            found = self.written[name] = spell_key(name, self.style)
        return found


@functools.lru_cache(maxsize=64)
def spelling(style: Style, colon: str) -> Spelling:
    """Return the one spelling with these; texts are kept by it."""
    return Spelling(style, colon)


PLAIN = spelling(Style.DOUBLE, ": ")


def scalar(value: object) -> Body:
    """Return the body of a single value, or a list of such, which is one tab stop."""
    if value == "":
        return Body('""', '"$1"', '""', '"$1"')
    if isinstance(value, list):
        return listed(value)
    text = spelled(value)
    inner = f'"${{1:{escaped(text[1:-1])}}}"' if isinstance(value, str) else f"${{1:{escaped(text)}}}"
    return Body(text, inner, text, inner)


def listed(value: list[object]) -> Body:
    """Return the body of a list, with its content as one tab stop."""
    text = ", ".join(spelled(item) for item in value)
    snippet = f"[${{1:{escaped(text)}}}]" if text else "[$1]"
    return Body(f"[{text}]", snippet, f"[{text}]", snippet)


def section(value: Mapping[str, object], spelling: Spelling = PLAIN, stops: Stops | None = None) -> Body:
    """Return the body of an object; ``stops`` says which values are tab stops, by default numbers."""
    if not value:
        return Body("{}", "{\n\t$0\n}", "{}", "{$0}", is_open=True)
    counter = _Counter()
    plain, plain_line = _object(value, spelling, "", None)
    snippet, _ = _object(value, spelling, "", replace_stops(counter, stops))
    _, snippet_line = _object(value, spelling, "", replace_stops(_Counter(), stops))
    return Body(plain, snippet, plain_line, snippet_line)


class _Counter:
    """The number of the next tab stop."""

    def __init__(self) -> None:
        self.number = 0

    def next(self) -> int:
        self.number += 1
        return self.number


Mark = Callable[[str, object], str]


def replace_stops(counter: _Counter, stops: Stops | None) -> Mark:
    """Return the function that writes a value with a tab stop where one belongs."""

    def mark(name: str, value: object) -> str:
        text = escaped(spelled(value))
        wanted = stops(name, value) if stops is not None else _is_number(value)
        if not wanted:
            return text
        if isinstance(value, str):
            inner = escaped(spelled(value)[1:-1])
            return f'"${{{counter.next()}:{inner}}}"' if inner else f'"${counter.next()}"'
        return f"${{{counter.next()}:{text}}}"

    return mark


def _object(value: Mapping[str, object], spelling: Spelling, level: str, mark: Mark | None) -> tuple[str, str]:
    """Return an object on several lines, and on one."""
    lines: list[str] = []
    parts: list[str] = []
    for name, inner in value.items():
        key = spelling.key(name)
        if isinstance(inner, Mapping) and inner:
            long, short = _object(inner, spelling, f"{level}\t", mark)
        else:
            long = short = spelled(inner) if mark is None else mark(name, inner)
        lines.append(f"\n{level}\t{key}{spelling.colon}{long}")
        parts.append(f"{key}{spelling.colon}{short}")
    return f"{{{','.join(lines)}\n{level}}}", f"{{{', '.join(parts)}}}"


def spelled(value: object) -> str:
    """Return a value as JSON on one line."""
    if isinstance(value, str):
        return spell_string(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(spelled(item) for item in value)}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{spell_string(str(name))}: {spelled(inner)}' for name, inner in value.items())}}}"
    return json_text(value)


def escaped(text: str) -> str:
    """Return a text as it is written in a snippet."""
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", text)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | list) and not isinstance(value, bool)
