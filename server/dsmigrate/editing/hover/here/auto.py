"""What "auto" becomes, and what the consumer makes of other values."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.derived import fate, must_match
from dsmigrate.editing.hover.here.subject import Subject
from dsmigrate.editing.hover.told import REFUSED, is_told
from dsmigrate.languages import say


def lines(at: Subject) -> Iterator[str]:
    """Yield what becomes of "auto", or what a value has to agree with."""
    if at.scalar is None:
        return
    found = fate(at.context, at.target.path, at.key)
    if at.scalar.value() == "auto":
        if found is not None and not (found.is_trouble and is_told(at.view, at.target, REFUSED)):
            yield found.sentence
        return
    source = must_match(at.context, at.target.path)
    if source:
        yield say(
            '{consumer} stops unless the value agrees with {source}; "auto" takes it from there.',
            consumer=at.view.consumer.title,
            source=source,
        )
    elif found is not None and found.auto.overwrites and not at.context.has(found.auto.unless):
        yield say(
            "{consumer} replaces the value: it writes {source}.",
            consumer=at.view.consumer.title,
            source=found.auto.source,
        )
