"""The samples of one optimizer step on one side, as a number or as a product with what is not known."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dsmigrate.diff.pair import Pair
from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.batch import WORLD, replaced_steps
from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import MICRO, SEQUENCE, STEPS, data_ranks, degree, text
from dsmigrate.rules.context import UNKNOWN

_NAMES = {MICRO: "micro-batch", STEPS: "accumulation"}


@dataclass(frozen=True, slots=True)
class Effective:
    """Samples per optimizer step: ``factor`` times what ``open`` names.

    ``text`` is the number or the formula. ``micro`` and ``steps`` are the samples of a pass on a rank and the passes of
    a step, as texts; ``sizes`` the same as numbers, None where they are not known.
    """

    factor: Fraction
    open: tuple[str, ...]
    text: str
    micro: str
    steps: str
    sizes: tuple[int | float | None, int | float | None]


def effective(side: Side) -> Effective | None:
    """Return the samples of an optimizer step; None where the keys make no sense, or ZenFlow counts the passes."""
    found = side.triad
    if found is None or replaced_steps(side.context):
        return None
    micro, steps = side.value(MICRO), side.value(STEPS)
    words = _part(side, MICRO, micro), _part(side, STEPS, steps)
    sizes = found.micro, found.steps
    if found.total is not None:
        return Effective(Fraction(found.total), (), text(found.total), *words, sizes)
    factor, names = Fraction(1), []
    for path, value in zip((MICRO, STEPS), sizes, strict=True):
        if value is None:
            names.append(_NAMES[path])
        else:
            factor *= Fraction(value)
    ranks = data_ranks(side.context)
    if ranks is None:
        factor /= degree(side.context, SEQUENCE) or 1
        names.append(WORLD)
    else:
        factor *= ranks
    return Effective(factor, tuple(names), found.effective, *words, sizes)


def ratio(old: Effective, new: Effective) -> Fraction | None:
    """Return how many samples there are for each one before; None when that depends on what is not known."""
    return new.factor / old.factor if old.open == new.open and old.factor else None


def same_on(old: Effective, new: Effective) -> int | None:
    """Return the number of ranks on which both sides agree, where one is a number and the other depends on it."""
    for number, formula in ((old, new), (new, old)):
        if not number.open and formula.open == (WORLD,) and formula.factor:
            ranks = number.factor / formula.factor
            return int(ranks) if ranks.denominator == 1 and ranks > 0 else None
    return None


def other_ranks(pair: Pair) -> str:
    """Return on how many ranks the batch fits where three keys say so on both sides and differ: ", on 1 rank …"."""
    before, after = (side.triad.needed if side.triad is not None else None for side in (pair.old, pair.new))
    if before is None or after is None or before == after:
        return ""
    return say(
        ", on {after} {en_word} instead of {before}",
        after=after,
        en_word="rank" if after == 1 else "ranks",
        before=before,
    )


def _part(side: Side, path: str, value: object) -> str:
    if isinstance(value, (int, float)):
        return text(value)
    assert side.triad is not None  # noqa: S101 - asked by effective alone
    formula = side.triad.formulas.get(path) if side.context.value(path) is not UNKNOWN else None
    return (
        formula
        if formula is not None
        else say("{names} of {consumer}", names=_NAMES[path], consumer=side.context.consumer.title)
    )
