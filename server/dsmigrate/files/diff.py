"""Unified diffs that ``patch -p1`` and ``git apply`` accept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
_NO_NEWLINE = "\\ No newline at end of file\n"
_PLAIN = re.compile(r"[ !#-\[\]-~]*")
_QUOTED = {byte: f"\\{byte:03o}" for byte in (*range(32), *range(127, 256))}
_QUOTED |= {ord(char): f"\\{letter}" for char, letter in zip('\a\b\t\n\v\f\r"\\', 'abtnvfr"\\', strict=True)}
"""How git writes the bytes of a name in quotes, which ``git apply`` and ``patch`` read."""
_MANY_LINES = 5000
"""Up to here, lines that occur often (blank ones) are aligned too: slower, and closer to what a person would mark."""


def unified(old: str | None, new: str, path: str, *, before: str | None = None, context: int = 3) -> str:
    """Return the unified diff of two texts of the file ``path``, "" when they are equal.

    ``old`` is None for a file that does not exist yet, ``before`` the name it had. Only line feeds separate lines, so
    that files with CRLF line ends patch cleanly.
    """
    if old == new:
        return ""
    lines = _LINE.findall(old or ""), _LINE.findall(new)
    name = "/dev/null" if old is None else named("a", before or path)
    return f"--- {name}\n+++ {named('b', path)}\n" + "".join(_hunks(*lines, context))


def renamed(diff: str, path: str) -> str:
    """Return a unified diff of one file as that of the file ``path``."""
    if not diff:
        return diff
    before, _, hunks = diff.split("\n", 2)
    name = before.removeprefix("--- ") if before == "--- /dev/null" else named("a", path)
    return f"--- {name}\n+++ {named('b', path)}\n{hunks}"


def gone_lines(diff: str) -> tuple[int, ...]:
    """Return the 1-based numbers of the old file's lines that a unified diff of one file takes away."""
    gone: list[int] = []
    number = 0
    for line in diff.split("\n")[2:]:
        hunk = _HUNK.match(line)
        if hunk:
            number = int(hunk[1])
        elif line.startswith("-"):
            gone.append(number)
            number += 1
        elif line.startswith(" "):
            number += 1
    return tuple(gone)


def _hunks(before: Sequence[str], after: Sequence[str], context: int) -> Iterator[str]:
    many = len(before) + len(after) > _MANY_LINES
    for group in SequenceMatcher(None, before, after, autojunk=many).get_grouped_opcodes(context):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from (_closed(" " + line) for line in before[old_start:old_end])
            else:
                yield from (_closed("-" + line) for line in before[old_start:old_end])
                yield from (_closed("+" + line) for line in after[new_start:new_end])


def _range(start: int, end: int) -> str:
    """Return "first line,count" as the format has it: the count left out for one line, the line before for none."""
    if end - start == 1:
        return str(start + 1)
    return f"{start + 1 if end > start else start},{end - start}"


def named(side: str, path: str) -> str:
    """Prefix relative paths as git does, quote what git quotes, and mark the end of names with blanks with a tab."""
    name = path.replace(os.sep, "/")
    name = name if name.startswith("/") else f"{side}/{name.removeprefix('./')}"
    if _PLAIN.fullmatch(name):
        return f"{name}\t" if " " in name else name
    return '"' + "".join(_QUOTED.get(byte, chr(byte)) for byte in os.fsencode(name)) + '"'


def _closed(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}"
