"""Leaving a rule out, for one place or for the whole file, in the words of ``checking.suppression``."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import render_path
from dsmigrate.document.errors import EditError
from dsmigrate.editing.actions import suppress_by_comment as by_comment
from dsmigrate.editing.actions import suppress_by_key as by_key
from dsmigrate.editing.actions.draft import why_not
from dsmigrate.editing.actions.model import QUICK_FIX, Action, Feature, Here, Outcome
from dsmigrate.editing.actions.quick_fix import at, mended
from dsmigrate.editing.view import View
from dsmigrate.languages import say
from dsmigrate.rules import Finding

NAME = "suppress"
_FILE = "file"
_PLACE = "place"


def uses_comments(view: View) -> bool:
    """Return whether a comment is the way: the reader takes them, and the file has some, so its editor does too."""
    return not view.consumer.reads_strict_json and bool(view.document.comments)


def _offer(view: View, here: Here) -> Iterator[Action]:
    if view.document.root is None:
        return  # there is no place for a key, and nothing to be silent about
    told: set[tuple[str, object]] = set()
    reason = ""
    for number, finding in at(view, here):
        if not told:
            reason = why_not(view.document)
        where = _where(view, finding)
        if where and (finding.code, where) not in told:
            told.add((finding.code, where))
            yield _action(
                say("Ignore {code} {where}", code=finding.code, where=where),
                (NAME, number, finding.code, _PLACE),
                finding,
                reason,
            )
        if (finding.code, "") not in told:
            told.add((finding.code, ""))
            title = say("Ignore {code} in this file", code=finding.code)
            yield _action(title, (NAME, number, finding.code, _FILE), finding, reason)


def _action(title: str, data: tuple[str | int, ...], finding: Finding, reason: str) -> Action:
    return Action(title, QUICK_FIX, data, codes=(mended(finding),), disabled=reason)


def _where(view: View, finding: Finding) -> str:
    """Return the place that a finding is left out at, in words; "" where that would be the whole file."""
    if uses_comments(view):
        return say("on line {number}", number=view.document.position(finding.start).line + 1)
    return say("at `{render_path}`", render_path=render_path(finding.path)) if by_key.can_name(finding.path) else ""


def _carry_out(view: View, number: int, code: str, what: str) -> Outcome:
    document = view.document
    finding = view.findings[number] if 0 <= number < len(view.findings) else None
    if finding is None or finding.code != code:
        return Outcome(left=(say("The finding is gone."),))
    reason = why_not(document)
    if reason:
        return Outcome(left=(reason,))
    if uses_comments(view):
        line = document.position(finding.start).line if what == _PLACE else None
        edits = by_comment.edits(document, code, line)
        if edits:
            return Outcome(edits, (say("{code} is ignored.", code=code),))
    try:
        edits = by_key.edits(document, code, finding.path if what == _PLACE else None)
    except EditError as error:
        return Outcome(left=(str(error),))
    return Outcome(edits, (say("{code} is ignored.", code=code),))


FEATURE = Feature(NAME, QUICK_FIX, _offer, _carry_out, (int, str, str))
