"""Conditions over what is not known: formulas of literals, kept small; what is assumed decides what they come to."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from dsmigrate.codemod.analysis.values import Const, Expr, show

LARGEST = 12
"""Literals in a condition; one of more says nothing (``MAYBE``)."""


@dataclass(frozen=True)
class Literal:
    """An atom or its opposite."""

    atom: Expr
    holds: bool = True

    @cached_property
    def varies(self) -> bool:
        return self.atom.varies

    @cached_property
    def loops(self) -> frozenset[ast.AST]:
        return self.atom.loops

    @property
    def size(self) -> int:
        return 1

    def __str__(self) -> str:
        return show(self.atom) if self.holds else f"not {show(self.atom)}"


@dataclass(frozen=True)
class Several:
    """All of some conditions, or any of them. Only "all of" holds something unsure, as one part of its own."""

    all_of: bool
    parts: frozenset[Condition]

    @cached_property
    def unsure(self) -> bool:
        return any(isinstance(part, Plain) for part in self.parts)

    @cached_property
    def varies(self) -> bool:
        return any(part.varies for part in self.parts)

    @cached_property
    def loops(self) -> frozenset[ast.AST]:
        return frozenset().union(*(part.loops for part in self.parts))

    @cached_property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    @cached_property
    def _hash(self) -> int:
        return hash((self.all_of, self.parts))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return "(" + (" and " if self.all_of else " or ").join(sorted(map(str, self.parts))) + ")"


@dataclass(frozen=True, slots=True)
class Plain:
    """A condition without parts: always, never, or not known."""

    name: str
    varies: bool = False
    loops: frozenset[ast.AST] = frozenset()

    @property
    def size(self) -> int:
        return 0

    def __str__(self) -> str:
        return self.name


Condition: TypeAlias = Literal | Several | Plain

TRUE = Plain("always")
FALSE = Plain("never")
MAYBE = Plain("maybe")
MAYBE_HERE = Plain("maybe on some ranks", varies=True)


def unknown(*, varies: bool) -> Condition:
    """The condition of which nothing is known, but whether all ranks agree."""
    return MAYBE_HERE if varies else MAYBE


def negate(condition: Condition) -> Condition:
    """The opposite of a condition."""
    match condition:
        case Literal():
            return Literal(condition.atom, not condition.holds)
        case Several():
            return _several(not condition.all_of, map(negate, condition.parts))
    return FALSE if condition is TRUE else TRUE if condition is FALSE else condition


def both(*conditions: Condition) -> Condition:
    """All of some conditions."""
    return _several(True, conditions)


def either(*conditions: Condition) -> Condition:
    """Any of some conditions."""
    return _several(False, conditions)


def _several(all_of: bool, conditions: Iterable[Condition]) -> Condition:  # noqa: FBT001 - which of the two
    neutral, absorbing = (TRUE, FALSE) if all_of else (FALSE, TRUE)
    parts: set[Condition] = set()
    for condition in conditions:
        if condition is absorbing:
            return absorbing
        if isinstance(condition, Several) and condition.all_of is all_of:
            parts |= condition.parts
        elif condition is not neutral:
            parts.add(condition)
    if any(isinstance(part, Literal) and Literal(part.atom, not part.holds) in parts for part in parts):
        return absorbing
    parts = _absorbed(all_of, parts)
    if not parts:
        return neutral
    if len(parts) == 1:
        return next(iter(parts))
    vague = [part for part in parts if isinstance(part, Plain) or (isinstance(part, Several) and part.unsure)]
    if vague and not all_of:
        return unknown(varies=any(part.varies for part in parts))
    if len(vague) > 1:
        parts = (parts - set(vague)) | {unknown(varies=any(part.varies for part in vague))}
    made = Several(all_of, frozenset(parts))
    return made if made.size <= LARGEST else unknown(varies=made.varies)


def _absorbed(all_of: bool, parts: set[Condition]) -> set[Condition]:  # noqa: FBT001
    """Without what the rest says already: of "a and (a or b)" a is left, of "a and (not a or b)" a and b."""
    literals = {part for part in parts if isinstance(part, Literal)}
    if not literals or all(isinstance(part, Literal) for part in parts):
        return parts
    found: set[Condition] = set()
    for part in parts:
        if isinstance(part, Several) and part.all_of is not all_of:
            if part.parts & literals:
                continue
            left = {one for one in part.parts if not (isinstance(one, Literal) and negate(one) in literals)}
            if len(left) < len(part.parts):
                part = _several(not all_of, left)  # noqa: PLW2901 - what is left of it
                if part is (FALSE if all_of else TRUE):
                    return {part}
                if isinstance(part, Several) and part.all_of is all_of:
                    found |= part.parts
                    continue
        found.add(part)
    return found


def literals_of(condition: Condition) -> Iterator[Literal]:
    """The literals that hold wherever a condition does."""
    if isinstance(condition, Literal):
        yield condition
    elif isinstance(condition, Several) and condition.all_of:
        yield from (part for part in condition.parts if isinstance(part, Literal))


def atoms_of(condition: Condition) -> Iterator[Expr]:
    """Every atom of a condition."""
    if isinstance(condition, Literal):
        yield condition.atom
    elif isinstance(condition, Several):
        for part in condition.parts:
            yield from atoms_of(part)


Assumed: TypeAlias = Mapping[Expr, bool]


def decided(condition: Condition, assumed: Assumed) -> bool | None:
    """Whether a condition holds where some atoms are known; None where that does not follow."""
    match condition:
        case Literal():
            known = assumed.get(condition.atom)
            if known is None:
                known = _follows(condition.atom, assumed)
            return None if known is None else known is condition.holds
        case Several(all_of=True):
            return _all(decided(part, assumed) for part in condition.parts)
        case Several():
            found = _all(_opposite(decided(part, assumed)) for part in condition.parts)
            return _opposite(found)
    return True if condition is TRUE else False if condition is FALSE else None


def _follows(atom: Expr, assumed: Assumed) -> bool | None:
    """What ``x == "a"`` says of ``x == "b"`` and of ``x`` itself."""
    if atom.op == "==" and isinstance(atom.args[1], Const):
        for other, holds in assumed.items():
            if holds and other.op == "==" and other.args[0] == atom.args[0] and isinstance(other.args[1], Const):
                return other.args[1] == atom.args[1]
        if assumed.get(atom.args[0]) is True and not atom.args[1].value:
            return False
        if assumed.get(atom.args[0]) is False and atom.args[1].value:
            return False
    elif atom.op == "is" and atom.args[1] == Const(None) and assumed.get(atom.args[0]) is True:
        return False
    else:
        for other, holds in assumed.items():
            if holds and other.op == "==" and other.args[0] == atom and isinstance(other.args[1], Const):
                return bool(other.args[1].value)
            if holds and other.op == "is" and other.args[0] == atom and other.args[1] == Const(None):
                return False
    return None


def _opposite(found: bool | None) -> bool | None:
    return None if found is None else not found


def _all(found: Iterable[bool | None]) -> bool | None:
    result: bool | None = True
    for one in found:
        if one is False:
            return False
        if one is None:
            result = None
    return result


def under(condition: Condition, assumed: Assumed) -> Condition:
    """What is left of a condition where some atoms are known."""
    found = decided(condition, assumed)
    if found is not None:
        return TRUE if found else FALSE
    if isinstance(condition, Several):
        return _several(condition.all_of, [under(part, assumed) for part in condition.parts])
    return condition


def outside(condition: Condition, loop: ast.AST) -> Condition:
    """A condition as it is seen from outside of a loop: what changes from turn to turn is not known there."""
    if loop not in condition.loops:
        return condition
    if isinstance(condition, Several):
        return _several(condition.all_of, [outside(part, loop) for part in condition.parts])
    return unknown(varies=condition.varies)


def without_ranks(condition: Condition) -> Condition | None:
    """The part of a condition on which all ranks agree, where its other part is a conjunct; None where it is not."""
    if not condition.varies:
        return condition
    if isinstance(condition, Several) and condition.all_of:
        return both(*(part for part in condition.parts if not part.varies))
    return TRUE if isinstance(condition, Literal | Plain) else None
