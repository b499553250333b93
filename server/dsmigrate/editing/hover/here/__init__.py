"""What a key does in this file: one module for each kind of line, each of which may have nothing to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dsmigrate.editing.hover.here import auto, batch, effect, io, memory, numbers, precision, rate, zero
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
    effect.default_lines,
)


def here(view: View, target: Target, key: Key | None) -> str:
    """Return the paragraph "In this file" about a target, "" when there is nothing to say.

    ``key`` is None for the parameters and types of optimizers and schedulers.
    """
    subject = Subject(view, target, key)
    found = [line for lines in _EVERY for line in lines(subject)]
    return "\n".join([say("**In this file**"), "", *(f"- {line}" for line in found)]) if found else ""
