"""Batch sizes that fit together: the total is micro-batch times accumulation steps times ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from dsmigrate.editing.completion.body import scalar
from dsmigrate.editing.completion.choices import Choice
from dsmigrate.editing.completion.item import Kind
from dsmigrate.editing.completion.situation import Situation
from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import (
    DATA,
    MICRO,
    SEQUENCE,
    STEPS,
    TOTAL,
    batch,
    data_ranks,
    degree,
    fits,
    is_elastic,
)

KEYS = (TOTAL, MICRO, STEPS)
DECISIVE = frozenset({*KEYS, SEQUENCE, DATA})
"""The keys that the equation is made of."""
_FACTORS = (1, 2, 4, 8)


def is_fitting(path: str, value: object, situation: Situation) -> bool:
    """Return whether the batch keys fit the number of ranks, or any if that is unknown, with a value for one."""
    asked = situation.assuming(path, value)
    keys, ranks = batch(asked), data_ranks(asked)
    if keys is None or not isinstance(keys.total, int | float):
        return _is_mesh(asked)
    if ranks is not None:
        return fits(keys, ranks) and _is_mesh(asked)
    return Fraction(keys.total) % Fraction(math.prod(keys.pinned)) == 0


def _is_mesh(situation: Situation) -> bool:
    """Return whether the known ranks can be laid out in the sizes for sequence and data."""
    size, data, ranks = degree(situation, SEQUENCE), degree(situation, DATA), situation.facts.world_size
    return size is None or data is None or ranks is None or size * data == ranks


def computed(path: str, situation: Situation) -> Iterator[Choice]:
    """Yield the values that the other two keys leave, with how they come about; nothing where these do not say it."""
    ranks = data_ranks(situation)
    if ranks is None or ranks.denominator != 1 or is_elastic(situation):
        return
    world = int(ranks)
    total, micro, steps = (_whole(situation.value(key)) if key != path else None for key in KEYS)
    behind = say("{world} rank{en_s}", world=world, en_s="" if world == 1 else "s")
    if path == TOTAL and micro is not None:
        for factor in (steps,) if steps is not None else _FACTORS:
            yield _choice(micro * factor * world, f"{micro} × {factor} × {behind}")
    elif total is not None and path == MICRO:
        for factor in (steps,) if steps is not None else _FACTORS:
            if total % (factor * world) == 0:
                yield _choice(total // (factor * world), f"{total} / ({factor} × {behind})")
    elif total is not None and micro is not None and total % (micro * world) == 0:
        yield _choice(total // (micro * world), f"{total} / ({micro} × {behind})")


def _choice(value: int, meaning: str) -> Choice:
    return Choice(value, scalar(value), Kind.VALUE, meaning)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
