"""The notes about a source as findings, so that a check reports Accelerate's own faults beside those of the rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from dsmigrate.convert.codes import REJECTED
from dsmigrate.convert.model import Kind, Note, Place
from dsmigrate.document import TextEdit
from dsmigrate.languages import say
from dsmigrate.rules import Effect, Finding, Fix, Rule, Severity


def findings_of(notes: Iterable[Note], whole: Place) -> Iterator[Finding]:
    """Yield a finding for each note but those that only tell something; ``whole`` is the place of the others."""
    for note in notes:
        if note.kind is Kind.TOLD:
            continue
        place = note.place or whole
        yield Finding(
            code=note.code,
            severity=_severity(note.code),
            effect=_effect(note),
            message=note.message,
            path=(note.key,),
            start=place.key_start,
            end=max(place.key_end, place.end if place.key_end == place.key_start else place.key_end),
            proposed=_fixes(note),
        )


def _fixes(note: Note) -> tuple[Fix, ...]:
    """Return the fix that writes what was meant, a guess but for a value that can mean nothing else."""
    if note.place is None or not note.meant:
        return ()
    place = note.place
    start, end = (place.start, place.end) if note.is_value else (place.key_start, place.key_end)
    title = say("Write `{text}`", text=note.meant)
    return (Fix(title, (TextEdit(start, end, note.meant),), note.is_value),)


def rules_of(codes: Collection[str]) -> list[Rule]:
    """Return what reports say of the codes among ``codes`` that are no rule's."""
    from dsmigrate.convert.explained import every_conversion  # noqa: PLC0415 - for reports that tell what codes mean

    return [
        Rule(
            code=about.code,
            name=about.name,
            summary=about.summary,
            why=about.why,
            severity=_severity(about.code),
            effect=Effect.REJECTED if about.rejects else Effect.MISREAD,
            source=about.source,
            examples=(),
            check=lambda _: (),
        )
        for about in every_conversion()
        if about.code in codes
    ]


def _severity(code: str) -> Severity:
    return Severity.ERROR if code in REJECTED else Severity.WARNING


def _effect(note: Note) -> Effect:
    if note.code in REJECTED:
        return Effect.REJECTED
    return Effect.IGNORED if note.kind is Kind.LOST else Effect.MISREAD
