"""Applying fixes until there is nothing left to mend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from dsmigrate.document import Document, EditError, TextEdit, apply, parse
from dsmigrate.document.edits import compose
from dsmigrate.rules.model import Finding, Fix

ROUNDS = 100
"""Rounds of mending after which fixes are taken to work against each other."""

MOST = 100
"""Fixes of one text. Each is proven by reading the whole text with it, so that thousands would take minutes."""

MOST_READ = 2 << 20
"""Characters that all rounds, or all proofs, read together; what a text of megabytes has left is for the next time."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """The document after mending, what was mended (finding and fix, in order), and what is left.

    ``edits`` are those of the text before mending that make it the document.
    """

    document: Document
    applied: tuple[tuple[Finding, Fix], ...]
    left: tuple[Finding, ...]
    edits: tuple[TextEdit, ...] = ()


def fix_all(document: Document, check: Callable[[Document], list[Finding]], *, unsafe: bool = False) -> Fixed:
    """Apply the first fix of each finding, safe ones only unless ``unsafe``, and check again, until nothing changes.

    Fixes of one round whose edits overlap wait for the next; after ``most_fixes`` of them, and after ``MOST_READ``,
    the others are left. A text that comes back ends the work, so that two fixes that undo each other cannot go on for
    ever.
    """
    applied: list[tuple[Finding, Fix]] = []
    done: tuple[TextEdit, ...] = ()
    original = document.text
    seen = {original}
    for _ in range(min(ROUNDS, max(3, MOST_READ // (len(original) + 1)))):
        findings = check(document)
        chosen = _compatible(document.text, findings, most_fixes(original) - len(applied), unsafe=unsafe)
        if not chosen:
            return Fixed(document, tuple(applied), tuple(findings), done)
        edits = [edit for _, fix in chosen for edit in fix.edits]
        mended = parse(apply(document.text, edits))
        if mended.text in seen:
            return Fixed(document, tuple(applied), tuple(findings), done)
        seen.add(mended.text)
        applied += chosen
        done = compose(original, done, edits)
        document = mended
    return Fixed(document, tuple(applied), tuple(check(document)), done)


def first_fix(finding: Finding, *, unsafe: bool) -> Fix | None:
    """Return the fix that would be applied for a finding, None when there is none that may be."""
    return next((fix for fix in finding.proposed if (fix.safe or unsafe) and fix.edits), None)


def _compatible(text: str, findings: list[Finding], most: int, *, unsafe: bool) -> list[tuple[Finding, Fix]]:
    chosen: list[tuple[Finding, Fix]] = []
    edits: list[TextEdit] = []
    for finding in with_few_fixes(text, findings):
        if len(chosen) == most:
            break
        fix = first_fix(finding, unsafe=unsafe)
        if fix is None or _touch(edits, fix.edits):
            continue
        try:
            apply(text, [*edits, *fix.edits])
        except EditError:
            continue
        edits += fix.edits
        chosen.append((finding, fix))
    return chosen


def most_fixes(text: str) -> int:
    """Return how many fixes of a text are worked out: ``MOST``, fewer where it has megabytes."""
    return max(3, min(MOST, MOST_READ // (len(text) + 1)))


def with_few_fixes(text: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings; those behind the first ``most_fixes`` that propose something without what they propose."""
    proposing, most = 0, most_fixes(text)
    for finding in findings:
        proposing += bool(finding.proposed)
        yield finding if proposing <= most or not finding.proposed else replace(finding, proposed=())


def _touch(edits: list[TextEdit], others: tuple[TextEdit, ...]) -> bool:
    """Return whether edits overlap or meet: what was right for one alone may not be beside the other."""
    return any(a.start <= b.end and b.start <= a.end for a in edits for b in others)
