"""The memory of both sides as formulas and, where parameters and GPUs are known, as bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dsmigrate.diff.pair import Pair
from dsmigrate.editing.derived.sizes import bytes_text, parameters_text
from dsmigrate.editing.derived.trained import trained
from dsmigrate.languages import say
from dsmigrate.memory import STATES, Model, Over, Part, Place, Usage, text, usage

_AS_IF = 8
"""GPUs that a comparison is made with where their number is not known."""
_MODEL = Model(10**9)


@dataclass(frozen=True, slots=True)
class Figures:
    """The parts of one place on both sides, and what they come to."""

    before: str
    after: str
    old: int | None
    new: int | None

    @property
    def formula(self) -> str:
        """Return "2Ψ + 14Ψ/N → 16Ψ/N bytes"."""
        return say("{before} → {after} bytes", before=self.before, after=self.after)

    @property
    def bytes(self) -> str:
        """Return "24.5 GiB → 13 GiB"; "" where parameters or GPUs are not known."""
        return "" if self.old is None or self.new is None else f"{bytes_text(self.old)} → {bytes_text(self.new)}"

    @property
    def percent(self) -> str:
        """Return by how much it changes, "-47 %"; "" where that is not known, or where there was nothing."""
        if not self.old or self.new is None:
            return ""
        return f"{round(100 * (self.new - self.old) / self.old):+d} %"


def figures(pair: Pair, place: Place) -> Figures | None:
    """Return the figures of a place: of model states on the GPU, of all shares of the model elsewhere.

    None where a stage is not known, or where both sides take the same.
    """
    found = both(pair)
    if found is None:
        return None
    old, new = (_shares(one, place) for one in found)
    before, after = text(old), text(new)
    return None if before == after else Figures(before, after, _bytes(old), _bytes(new))


def both(pair: Pair) -> tuple[Usage, Usage] | None:
    """Return the memory of both sides."""
    old, new = usage(pair.old.context), usage(pair.new.context)
    return None if old is None or new is None else (old, new)


def grows(pair: Pair, place: Place) -> bool:
    """Return whether the new side takes more of a place, as if on 8 GPUs where their number is not known."""
    sizes = []
    for side in (pair.old, pair.new):
        ranks = side.context.facts.world_size or _AS_IF
        found = usage(side.context, _MODEL, ranks)
        sizes.append(0 if found is None else _bytes(_shares(found, place)) or 0)
    return sizes[1] > sizes[0]


def taken_for_granted(pair: Pair) -> str:
    """Return the facts that bytes are computed with, or the letters of the formula, and what was assumed."""
    found, facts = both(pair), pair.new.context.facts
    assumes = list(dict.fromkeys(what for one in found or () for what in one.assumes))
    known = facts.parameters and facts.world_size
    given = (
        say(
            "{parameters} parameters, {world_size} GPUs",
            parameters=parameters_text(facts.parameters),
            world_size=facts.world_size,
        )
        if facts.parameters and known
        else say("Ψ parameters, N GPUs")
    )
    if known and facts.model is not None and facts.model.frozen:
        given = say("{trained}; {world_size} GPUs", trained=trained(facts), world_size=facts.world_size)
    return say("{given}; assuming {assumes}", given=given, assumes=say(" and ").join(assumes)) if assumes else given


def _shares(found: Usage, place: Place) -> tuple[Part, ...]:
    parts = found.select(place, STATES if place is Place.GPU else None)
    return tuple(part for part in parts if part.over is not Over.COUNT)


def _bytes(parts: Iterable[Part]) -> int | None:
    sizes = [part.bytes for part in parts]
    return None if None in sizes else sum(size for size in sizes if size is not None)
