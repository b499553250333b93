"""Whether a change is sound: the rules find no error in its result that they did not find before."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from dsmigrate.document import Document
from dsmigrate.document.errors import EditError
from dsmigrate.editing.actions.draft import Draft
from dsmigrate.editing.actions.model import Outcome
from dsmigrate.rules import Finding, Rule, Settings, Severity

_ROUNDS = 20


def new_errors(settings: Settings, draft: Draft) -> list[Finding]:
    """Return the errors found in a draft that are not found in its original at the same path."""
    known = {_name(finding) for finding in errors(settings, draft.original, draft.unknown_before)}
    return [finding for finding in errors(settings, draft.document, draft.unknown) if _name(finding) not in known]


def errors(settings: Settings, document: Document, unknown: frozenset[int] = frozenset()) -> list[Finding]:
    """Return the findings with which a config does not load, or does not train; for ``unknown`` see Context."""
    from dsmigrate.rules import check  # noqa: PLC0415 - imports every rule

    every = replace(settings, select=(), ignore=())  # what nobody wants to hear is an error all the same
    return [finding for finding in check(document, every, unknown=unknown) if finding.severity is Severity.ERROR]


def rules_of(codes: Collection[str]) -> list[Rule]:
    """Return the rules of some codes."""
    from dsmigrate.rules import every_rule  # noqa: PLC0415 - imports every rule

    return [rule for rule in every_rule() if rule.code in codes]


def settled(settings: Settings, draft: Draft, *, mend: Collection[str] = (), left: tuple[str, ...] = ()) -> Outcome:
    """Return the outcome of a draft, or the errors that it would bring instead.

    ``mend`` are codes whose first fix belongs to the change: it is made where the change brings such an error.
    """
    for _ in range(_ROUNDS):
        found = new_errors(settings, draft)
        if not found:
            return Outcome(draft.edits, draft.done, left)
        fix = next((fix for finding in found if finding.code in mend for fix in finding.fixes if fix.edits), None)
        if fix is None:
            break
        try:
            draft = draft.with_edits(fix.edits, f"{fix.title}.")
        except EditError:
            break
    return Outcome(left=tuple(dict.fromkeys(f"{finding.code}: {finding.message}" for finding in found)))


def _name(finding: Finding) -> tuple[str, object]:
    return finding.code, finding.path
