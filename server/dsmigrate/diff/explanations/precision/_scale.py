"""The loss scale of one side, in words."""

from __future__ import annotations

from dsmigrate.diff.phrases import number
from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.languages import say
from dsmigrate.rules.precision._shared import DYNAMIC

POWER = "fp16.initial_scale_power"
_LARGEST = 64


def is_dynamic(side: Side) -> bool | None:
    """Return whether the loss scale adapts; None when that is open."""
    scale = side.number(DYNAMIC)
    return None if scale is None else scale == 0


def first_scale(side: Side) -> str:
    """Return how the loss scale starts: "that starts at 65536", "fixed at 128"; "" words for what is open."""
    scale = side.number(DYNAMIC)
    if scale:
        return say("fixed at {scale}", scale=number(scale))
    begins = start(side)
    return say("that starts at {number}", number=begins) if begins else say("that adapts")


def start(side: Side) -> str:
    """Return where a loss scale that adapts starts; "" for a fixed one, and where that is open."""
    power = whole(side.value(POWER))
    if side.number(DYNAMIC) != 0 or power is None or power > _LARGEST:
        return ""
    return str(2**power)
