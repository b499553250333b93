"""What a key does in this file: one module for each kind of line, each of which may have nothing to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dsmigrate.editing.hover.budget import Note
from dsmigrate.editing.hover.here import auto, batch, effect, io, memory, numbers, precision, rate, value, zero
from dsmigrate.editing.hover.here.subject import Subject
from dsmigrate.editing.hover.target import Target
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Key
from dsmigrate.languages import say

_EVERY: tuple[Callable[[Subject], Iterator[str]], ...] = (
    auto.lines,
    effect.lines,
    batch.lines,
    memory.lines,
    zero.lines,
    precision.lines,
    rate.lines,
    io.lines,
    numbers.lines,
)


def here(view: View, target: Target, key: Key | None) -> Note:
    """Return the paragraph "In this file" about a target, most important first.

    ``key`` is None for the parameters and types of optimizers and schedulers.
    """
    subject = Subject(view, target, key)
    found = [line for lines in _EVERY for line in lines(subject)] or list(value.lines(subject))
    return Note(say("In this file."), [*found, *effect.default_lines(subject)])
