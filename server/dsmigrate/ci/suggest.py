"""Fixes of findings as suggestions, which a reviewer takes over with a click: at lines that a pull request changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dsmigrate.checking.formats.places import url
from dsmigrate.checking.job import Checked
from dsmigrate.ci.run import Ran
from dsmigrate.diff.changed import Outcome
from dsmigrate.diff.formats.markdown import message
from dsmigrate.document import DocumentError, apply, parse_bytes
from dsmigrate.files.diff import gone_lines, unified
from dsmigrate.rules import Finding
from dsmigrate.rules.fixing import first_fix

_MOST = 30
"""How many suggestions a review gets; `dsmigrate check --fix` makes all."""
_FENCE = re.compile(r"^`{3,}", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The lines ``first`` to ``last`` of the new file, from 1, and the comment that replaces them."""

    path: str
    first: int
    last: int
    body: str


def suggestions(ran: Ran) -> tuple[Suggestion, ...]:
    """Return a suggestion for each fix that touches changed lines alone, in the order of the files.

    GitHub takes comments at lines of the diff. Of two fixes of the same lines the first one is suggested.
    """
    checked = {entry.name: entry for entry in ran.checked}
    found: dict[tuple[str, int], Suggestion] = {}
    for outcome in ran.outcomes:
        entry = checked.get(outcome.entry.path)
        for one in () if entry is None else _of_file(outcome, entry):
            found.setdefault((one.path, one.first), one)
    return tuple(found.values())[:_MOST]


def _of_file(outcome: Outcome, entry: Checked) -> Iterator[Suggestion]:
    fixes = [(finding, fix) for finding in entry.findings if (fix := first_fix(finding, unsafe=True)) is not None]
    if entry.document is None or not fixes:
        return
    text = entry.document.text
    lines = text.split("\n")
    changed = {line - 1 for line in gone_lines(unified(text, _before(outcome), entry.name))}
    for finding, fix in fixes:
        first, last, others = _replaced(lines, apply(text, fix.edits).split("\n"))
        if changed.issuperset(range(first, last)):
            yield Suggestion(entry.name, first + 1, last, _body(finding, fix.title, others))


def _before(outcome: Outcome) -> str:
    old = outcome.entry.old
    try:
        return "" if old is None else parse_bytes(old.data).text
    except DocumentError:
        return ""


def _replaced(before: Sequence[str], after: Sequence[str]) -> tuple[int, int, Sequence[str]]:
    """Return the lines that a fix replaces, from 0 and up to before the second number, and what with; at least one."""
    shorter = min(len(before), len(after))
    start = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    same = next((at for at in range(shorter - start) if before[-1 - at] != after[-1 - at]), shorter - start)
    if start == len(before) - same:  # lines that come in: with the one above them
        start = max(start - 1, 0)
    return start, len(before) - same, after[start : len(after) - same]


def _body(finding: Finding, title: str, lines: Sequence[str]) -> str:
    text = "\n".join(line.removesuffix("\r") for line in lines)
    fence = max((found[0] for found in _FENCE.finditer(text)), key=len, default="``") + "`"
    said = f"[{finding.code}]({url(finding.code)}): {message(finding.message)}\n\n{message(title)}:"
    return f"{said}\n\n{fence}suggestion\n{text}\n{fence}\n" if lines else f"{said}\n\n{fence}suggestion\n{fence}\n"
