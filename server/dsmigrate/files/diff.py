"""Unified diffs that ``patch -p1`` and ``git apply`` accept."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
NO_NEWLINE = "\\ No newline at end of file\n"


def unified(old: str | None, new: str, path: str, *, context: int = 3) -> str:
    """Return the unified diff of two texts of the file ``path``, "" when they are equal.

    ``old`` is None for a file that does not exist yet. Only line feeds separate lines, so that files with CRLF line
    ends patch cleanly.
    """
    if old == new:
        return ""
    before = "/dev/null" if old is None else _named("a", path)
    lines = difflib.unified_diff(
        _LINE.findall(old or ""), _LINE.findall(new), before, _named("b", path), n=context, lineterm="\n"
    )
    return "".join(_closed(lines))


def _named(side: str, path: str) -> str:
    """Prefix relative paths as git does, and mark the end of names with blanks with a tab as it does."""
    name = path.replace("\\", "/")
    name = name if name.startswith("/") else f"{side}/{name.removeprefix('./')}"
    return f"{name}\t" if " " in name else name


def _closed(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}"
