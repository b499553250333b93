"""What a key touches, from the facts of the key."""

from __future__ import annotations

from dsmigrate.diff.model import Effect, Severity
from dsmigrate.diff.pair import Pair

_WANTS_A_LOOK = frozenset({Effect.NUMERICS, Effect.VALIDITY})


def effects_of(pair: Pair, path: str) -> tuple[Effect, ...]:
    """Return what a key touches when it acts, by the facts of the newer side that knows it.

    A parameter of an optimizer or scheduler touches the numbers.
    """
    for side in (pair.new, pair.old):
        key = side.known.key(path)
        if key is not None and key.affects:
            return tuple(Effect(name) for name in key.affects)
    return (Effect.NUMERICS,)


def severity_of(effects: tuple[Effect, ...]) -> Severity:
    """Return how much a change matters of which nothing is known but what it touches."""
    if effects == (Effect.NONE,):
        return Severity.NONE
    return Severity.WARNING if _WANTS_A_LOOK & set(effects) else Severity.INFO
