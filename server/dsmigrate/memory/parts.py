"""Making parts: of a share of the model, or of a number of elements."""

from __future__ import annotations

from dsmigrate.memory.model import Over, Part, Place, Surety, What, When
from dsmigrate.memory.scene import Scene


def share(
    scene: Scene,
    what: What,
    width: float,
    over: Over,
    says: str,
    *,
    place: Place = Place.GPU,
    when: When = When.ALWAYS,
    surety: Surety = Surety.EXACT,
    pinned: bool = False,
    divisor: int = 1,
) -> Part:
    """Return a part whose elements are a share of the model, counted as far as model and ranks are known."""
    return Part(what, place, when, width, over, scene.count(over, divisor), says, surety, pinned, divisor)


def fixed(
    what: What,
    width: float,
    count: int,
    says: str,
    *,
    place: Place = Place.GPU,
    when: When = When.ALWAYS,
    surety: Surety = Surety.EXACT,
    pinned: bool = False,
) -> Part:
    """Return a part with a number of elements of its own."""
    return Part(what, place, when, width, Over.COUNT, count, says, surety, pinned)
