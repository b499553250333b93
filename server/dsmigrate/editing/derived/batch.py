"""The batch triad: what DeepSpeed makes of the three keys, with the number of ranks known or not."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dsmigrate.editing.derived.sizes import LARGEST
from dsmigrate.knowledge import MISSING, Status
from dsmigrate.languages import mark, say
from dsmigrate.rules.batch._shared import (
    DATA,
    MICRO,
    SEQUENCE,
    STEPS,
    TOTAL,
    batch,
    data_ranks,
    degree,
    is_elastic,
    text,
)
from dsmigrate.rules.context import UNKNOWN, Context, is_absurd

KEYS = (TOTAL, MICRO, STEPS)
DEGREES = (SEQUENCE, DATA)
"""Keys that divide the world size of the equation."""
WORLD = mark("world size")
_ZENFLOW = "zero_optimization.zenflow"

Number = int | float


@dataclass(frozen=True, slots=True)
class Triad:
    """The three numbers as DeepSpeed computes them; None where that takes what is not known.

    ``formulas`` says for each of the keys that the file leaves out how it is computed, with the result where there is
    one. ``effective`` is the formula of the effective batch. ``fits`` is False when no division comes out even, so that
    DeepSpeed stops; ``needed`` is the number of ranks that three given keys ask for.
    """

    total: Number | None
    micro: Number | None
    steps: Number | None
    formulas: dict[str, str]
    effective: str
    fits: bool = True
    needed: Fraction | None = None

    def value(self, key: str) -> Number | None:
        """Return one of the three by the name of its key."""
        return {TOTAL: self.total, MICRO: self.micro, STEPS: self.steps}[key]


def triad(context: Context) -> Triad | None:
    """Return the triad of a file; None where a key makes no sense, or where no batch size is given."""
    keys = batch(context)
    if keys is None or (keys.total is None and keys.micro is None):
        return None
    if any(isinstance(value, (int, float)) and value > LARGEST for value in (keys.total, keys.micro, keys.steps)):
        return None
    if any(is_absurd(context.raw(key)) for key in KEYS):
        return None
    ranks = data_ranks(context)
    if ranks is not None and not 0 < ranks <= LARGEST:
        return None
    return _derived(_term(keys.total), _term(keys.micro), _term(keys.steps), ranks, _ranks_text(context, ranks))


def replaced_steps(context: Context) -> str:
    """Return what ZenFlow puts instead of the accumulation, in words; "" without ZenFlow.

    The engine does so after the batch keys were checked (deepspeed/runtime/zenflow/engine.py:configure_zenflow).
    """
    section = context.known.key(_ZENFLOW)
    if section is None or section.status is not Status.PRESENT or context.raw(_ZENFLOW) in (MISSING, None):
        return ""
    interval = context.number(f"{_ZENFLOW}.update_interval")
    return say("what it decides during training") if interval is None else text(interval)


def computed_elsewhere(context: Context) -> str:
    """Return who computes the batch sizes instead of the three keys; "" when nobody does."""
    return "elasticity" if is_elastic(context) else ""


class _Open:
    """A number that the consumer fills in: a name in formulas."""


_OPEN = _Open()
_Term = Number | _Open | None
_Numbers = tuple[Number | None, Number | None, Number | None]


def _term(value: object) -> _Term:
    if value is UNKNOWN:
        return _OPEN
    return value if isinstance(value, (int, float)) else None


def _derived(total: _Term, micro: _Term, steps: _Term, ranks: Fraction | None, world: str) -> Triad:
    """Fill in what is left out, in the order and with the floor divisions of DeepSpeed."""
    formulas: dict[str, str] = {}
    if total is not None and micro is not None and steps is not None:
        pass
    elif micro is not None:
        if total is None:
            if steps is None:
                steps, formulas[STEPS] = 1, "1"
            total, formulas[TOTAL] = _product(micro, steps, ranks, world)
        else:
            steps, formulas[STEPS] = _quotient(total, (micro, say("micro-batch")), ranks, world)
    else:
        if steps is None:
            steps, formulas[STEPS] = 1, "1"
        micro, formulas[MICRO] = _quotient(total, (steps, say("accumulation")), ranks, world)
    numbers = _number(total), _number(micro), _number(steps)
    return Triad(
        total=numbers[0],
        micro=numbers[1],
        steps=numbers[2],
        formulas=formulas,
        effective=_effective(total, micro, steps, ranks, world),
        fits=TOTAL in formulas or _fits(numbers, ranks),
        needed=_needed(numbers) if not formulas else None,
    )


def _product(micro: _Term, steps: _Term, ranks: Fraction | None, world: str) -> tuple[_Term, str]:
    formula = f"{_named(micro, say('micro-batch'))} × {_named(steps, say('accumulation'))} × {world}"
    if isinstance(micro, (int, float)) and isinstance(steps, (int, float)) and ranks is not None:
        result = _plain(Fraction(micro) * Fraction(steps) * ranks)
        return result, f"{formula} = {text(result)}"
    return _OPEN, formula


def _quotient(total: _Term, other: tuple[_Term, str], ranks: Fraction | None, world: str) -> tuple[_Term, str]:
    divisor = _named(*other)
    by = world if divisor == "1" else f"({divisor} × {world})"
    formula = f"{_named(total, say('total'))} / {by}"
    if isinstance(total, (int, float)) and isinstance(other[0], (int, float)) and ranks is not None:
        result = _plain(Fraction(total) // (Fraction(other[0]) * ranks))
        return result, f"{formula} = {text(result)}"
    return _OPEN, formula


def _effective(total: _Term, micro: _Term, steps: _Term, ranks: Fraction | None, world: str) -> str:
    if isinstance(total, (int, float)):
        return text(total)
    return _product(micro, steps, ranks, world)[1]


def _fits(numbers: _Numbers, ranks: Fraction | None) -> bool:
    total, micro, steps = numbers
    if total is None or micro is None or steps is None:
        return True
    if ranks is None:
        return _needed(numbers) is not None
    return micro > 0 and steps > 0 and Fraction(total) == Fraction(micro) * Fraction(steps) * ranks


def _needed(numbers: _Numbers) -> Fraction | None:
    """Return the number of ranks with which three keys agree; None where there is none."""
    total, micro, steps = numbers
    if total is None or not micro or not steps:
        return None
    ranks = Fraction(total) / (Fraction(micro) * Fraction(steps))
    return ranks if ranks.denominator == 1 else None


def _ranks_text(context: Context, ranks: Fraction | None) -> str:
    if ranks is not None:
        return text(ranks)
    sequence = degree(context, SEQUENCE)
    if sequence is None or sequence == 1 or sequence > LARGEST:
        return say(WORLD)
    return f"{say(WORLD)} / {sequence}"


def _number(value: _Term) -> Number | None:
    return value if isinstance(value, (int, float)) else None


def _named(value: _Term, name: str) -> str:
    return text(value) if isinstance(value, (int, float)) else name


def _plain(value: Fraction | int) -> Number:
    return int(value) if Fraction(value).denominator == 1 else float(value)
