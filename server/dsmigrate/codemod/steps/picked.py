"""Which parameters of a model a test lets through, as a formula over what is known of a parameter."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

_MOST = 8
_RANKS = range(6)
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Base:
    """What names are relative to: a part of the model, and what stands before them (``module.`` behind DDP, or nothing)."""

    path: str
    fronts: tuple[str, ...] = ("",)


@dataclass(frozen=True, slots=True)
class Atom:
    """One test: ``part`` (belongs to it), ``in``, ``starts``, ``ends``, ``is`` (of the name), ``rank``, or any other ``text``."""

    kind: str
    word: str
    base: Base | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Formula:
    """A test put together from atoms: ``and``, ``or`` and ``not`` of formulas, or one atom."""

    kind: str
    inner: tuple[Formula, ...] = ()
    atom: Atom | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a parameter: its name, or only how the name begins, and how many dimensions it has."""

    name: str
    is_whole: bool
    rank: int | None = None


Values: TypeAlias = "dict[Atom, bool]"
ALL = Formula("and")
NONE = Formula("or")
ANYTHING = Known("", is_whole=False)


def atom(kind: str, word: str, base: Base | None = None, number: int = 0) -> Formula:
    """A formula of one test."""
    return Formula("atom", atom=Atom(kind, word, base, number))


def both(*inner: Formula) -> Formula:
    """What passes all of these."""
    return Formula("and", inner)


def either(*inner: Formula) -> Formula:
    """What passes one of these."""
    return Formula("or", inner)


def fails(inner: Formula) -> Formula:
    """What does not pass."""
    return Formula("not", (inner,))


def outcomes(formula: Formula, known: Known) -> set[bool]:
    """What a test may say of a parameter of which only so much is known."""
    atoms = list(dict.fromkeys(_atoms(formula)))
    said = {one: _says(one, known) for one in atoms if one.kind != "rank"}
    open_ones = [one for one, value in said.items() if value is None]
    if len(open_ones) > _MOST:
        return {True, False}
    ranked = [one for one in atoms if one.kind == "rank"]
    ranks = _RANKS if ranked and known.rank is None else (known.rank or 0,)
    found: set[bool] = set()
    for rank in ranks:
        values: Values = {one: _COMPARE[one.word](rank, one.number) for one in ranked}
        values |= {one: value for one, value in said.items() if value is not None}
        for choice in itertools.product((True, False), repeat=len(open_ones)):
            found.add(_holds(formula, values | dict(zip(open_ones, choice, strict=True))))
    return found


def _atoms(formula: Formula) -> Iterator[Atom]:
    if formula.atom is not None:
        yield formula.atom
    for inner in formula.inner:
        yield from _atoms(inner)


def _holds(formula: Formula, values: Values) -> bool:
    if formula.atom is not None:
        return values[formula.atom]
    parts = (_holds(inner, values) for inner in formula.inner)
    if formula.kind == "not":
        return not next(parts)
    return all(parts) if formula.kind == "and" else any(parts)


def _says(one: Atom, known: Known) -> bool | None:
    """What an atom says; None where that is not known."""
    if one.kind == "text":
        return None
    if one.kind == "part":
        path = f"{one.word}."
        if known.name == one.word or known.name.startswith(path):
            return True
        return None if not known.is_whole and path.startswith(known.name) else False
    assert one.base is not None
    inside = f"{one.base.path}." if one.base.path else ""
    if not known.name.startswith(inside):
        return None if not known.is_whole and inside.startswith(known.name) else False
    said = {_of_name(one, front + known.name[len(inside) :], is_whole=known.is_whole) for front in one.base.fronts}
    return said.pop() if len(said) == 1 else None


def _of_name(one: Atom, name: str, *, is_whole: bool) -> bool | None:
    if one.kind == "in":
        return True if one.word in name else (False if is_whole else None)
    if one.kind == "starts":
        if name.startswith(one.word):
            return True
        return None if not is_whole and one.word.startswith(name) else False
    if one.kind == "ends":
        return name.endswith(one.word) if is_whole else None
    if is_whole:
        return name == one.word
    return None if one.word.startswith(name) else False
