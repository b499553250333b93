"""What the value of a key stands for."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.hover.here.effect import is_useless
from dsmigrate.editing.hover.here.subject import Subject
from dsmigrate.editing.hover.values import listed, written
from dsmigrate.languages import say


def lines(at: Subject) -> Iterator[str]:
    """Yield it on the key, for a listed value that counts and of which no other line tells more."""
    if at.key is None or at.scalar is None or at.target.on_value or is_useless(at):
        return
    means = listed(at.key, at.scalar.value())
    if means:
        yield say("{what}: {means}.", what=written(at.scalar), means=means)
