"""The effective batch, and what the other batch keys come to."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.derived import Triad, replaced_steps, triad
from dsmigrate.editing.derived.batch import DEGREES, KEYS
from dsmigrate.editing.hover.here.subject import Subject
from dsmigrate.editing.hover.told import is_told
from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import STEPS, text
from dsmigrate.rules.model import Effect


def lines(at: Subject) -> Iterator[str]:
    """Yield the equation of the file at each of its keys."""
    if at.path not in {*KEYS, *DEGREES}:
        return
    found = triad(at.context)
    if found is not None and (found.fits or not is_told(at.view, at.target, Effect)):
        yield from _equation(found, at.context.facts.world_size)
    replaced = replaced_steps(at.context)
    if replaced and at.path == STEPS and not is_told(at.view, at.target, {Effect.OVERRIDDEN}):
        yield say("ZenFlow replaces the accumulation by its update interval: {replaced}.", replaced=replaced)


def _equation(found: Triad, world: int | None) -> Iterator[str]:
    if found.needed is not None:
        yield say(
            "The three keys fit a world size of {needed}: effective batch {what}.",
            needed=text(found.needed),
            what=text(found.total or 0),
        )
        return
    if not found.fits:
        fit = (
            say("No world size fits the three keys.")
            if world is None
            else say("The keys do not fit a world size of {world}.", world=world)
        )
        yield fit
        return
    yield say("Effective batch: {effective}.", effective=found.effective)
    for name, formula in found.formulas.items():
        yield say("`{name}` is left out: DeepSpeed takes {formula}.", name=name, formula=formula)
