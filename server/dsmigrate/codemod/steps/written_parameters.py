"""The parameters that a file makes by ``nn.Parameter(…)``, as text, on however many lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BRACKET = re.compile(r"[()]")
_PARAMETER = re.compile(r"\bParameter\(")


def written_parameters(text: str) -> Iterator[str]:
    """What stands between the brackets of each ``Parameter(…)`` of a text."""
    return calls(text, _PARAMETER)


def calls(text: str, opening: re.Pattern[str]) -> Iterator[str]:
    """What stands between the brackets of each call whose beginning, bracket included, a pattern finds."""
    for found in opening.finditer(text):
        yield text[found.end() : _closing(text, found.end())]


def _closing(text: str, start: int) -> int:
    """Where the bracket ends that was opened just before."""
    depth = 1
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0:
            return bracket.start()
    return len(text)
