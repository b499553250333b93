"""The fixes of the findings at a place, each as a quick fix."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from dsmigrate.editing.actions.model import QUICK_FIX, Action, Feature, Here, Mended, Outcome
from dsmigrate.editing.view import View
from dsmigrate.languages import say
from dsmigrate.rules import Finding, Fix

NAME = "fix"
_MOST = 200
"""Findings of one range that something is offered for: nobody chooses from a menu of more."""


def at(view: View, here: Here) -> Iterator[tuple[int, Finding]]:
    """Return the findings that lie at a range or touch it, with their numbers; of very many the first."""
    found = (
        (number, finding)
        for number, finding in enumerate(view.findings)
        if finding.start <= here.end and here.start <= finding.end
    )
    return islice(found, _MOST)


def mended(finding: Finding) -> Mended:
    """Return what an action says of a finding that it mends."""
    return Mended(finding.code, finding.start, finding.end)


def _offer(view: View, here: Here) -> Iterator[Action]:
    from dsmigrate.rules.fixing import with_few_fixes  # noqa: PLC0415 - with the rules

    found: dict[tuple[str, object], Action] = {}
    numbers = dict(at(view, here))
    for number, finding in zip(numbers, with_few_fixes(view.text, numbers.values()), strict=True):
        best = next((fix for fix in finding.fixes if fix.safe and fix.edits), None)
        for index, fix in enumerate(finding.fixes):
            if not fix.edits:
                continue
            same = found.get((fix.title, fix.edits))
            found[fix.title, fix.edits] = Action(
                fix.title,
                QUICK_FIX,
                same.data if same else (NAME, number, index, finding.code),
                preferred=fix is best or (same is not None and same.preferred),
                codes=(*(same.codes if same else ()), mended(finding)),
            )
    yield from found.values()


def _carry_out(view: View, number: int, index: int, code: str) -> Outcome:
    fix = _fix(view, number, index, code)
    return Outcome(fix.edits, (f"{fix.title}.",)) if fix else Outcome(left=(say("The finding is gone."),))


def _fix(view: View, number: int, index: int, code: str) -> Fix | None:
    finding = view.findings[number] if 0 <= number < len(view.findings) else None
    if finding is None or finding.code != code or not 0 <= index < len(finding.fixes):
        return None
    return finding.fixes[index]


FEATURE = Feature(NAME, QUICK_FIX, _offer, _carry_out, (int, int, str))
