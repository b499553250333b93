"""Deprecated keys and shapes, as the rules rewrite them: ``cpu_offload``, ``zero_optimization: true``."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Document
from dsmigrate.editing.actions.draft import Edits, Step
from dsmigrate.editing.actions.judging import rules_of
from dsmigrate.editing.actions.upgrading.crossing import Crossing, Left
from dsmigrate.knowledge import Status
from dsmigrate.rules import Finding

_CODES = ("DS112", "DS113")


def rewritten(crossing: Crossing) -> Iterator[Step | Left]:
    """Yield one step with the edits of all rewritings, and one without edits for each further thing that it does."""
    deprecated = any(key.status is Status.DEPRECATED for _, key in crossing.entries())
    if not deprecated and not isinstance(crossing.context.raw("zero_optimization"), bool):
        return
    from dsmigrate.rules.fixing import fix_all  # noqa: PLC0415 - with the rules
    from dsmigrate.rules.run import check_with  # noqa: PLC0415 - with the rules

    rules = rules_of(_CODES)

    def check(document: Document) -> list[Finding]:
        unknown = crossing.context.unknown if document is crossing.document else frozenset()
        return check_with(document, crossing.settings, rules, unknown=unknown)

    fixed = fix_all(crossing.document, check, unsafe=True)
    for number, (finding, fix) in enumerate(fixed.applied):
        edits = fixed.edits if number == 0 else ()
        yield _given(edits, f"{finding.message}: {fix.title[:1].lower()}{fix.title[1:]}.")


def _given(edits: Edits, told: str) -> Step:
    return Step(lambda _: edits, told)
