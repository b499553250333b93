"""Conditions over what is not known: formulas of literals, kept small; what is assumed decides what they come to.

Equal conditions are one object, so that they are compared and combined at the cost of a look-up.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, TypeAlias

from dsmigrate.codemod.analysis.values import UNBOUND, Choice, Const, Expr, Interning, Value, show

LARGEST = 12
"""Literals in a condition; one of more says nothing (``MAYBE``)."""


_SERIALS = itertools.count()


class Condition:
    """A condition. ``varies``: ranks may disagree; ``loops``: where it may change from turn to turn; ``size`` in literals."""

    __slots__ = ("loops", "serial", "size", "varies")

    varies: bool
    loops: frozenset[ast.AST]
    size: int
    serial: int
    """Which condition it is, in the order in which they were made."""

    def __repr__(self) -> str:
        return str(self)


class Plain(Condition):
    """A condition without parts: always, never, or not known."""

    __slots__ = ("name",)

    def __init__(self, name: str, *, varies: bool = False) -> None:
        self.name = name
        self.varies = varies
        self.loops = frozenset()
        self.size = 0
        self.serial = next(_SERIALS)

    def __str__(self) -> str:
        return self.name


class Literal(Condition):
    """An atom or its opposite."""

    __slots__ = ("atom", "holds")
    __match_args__ = ("atom", "holds")
    _known: ClassVar[dict[tuple[Expr, bool], Literal]] = {}

    atom: Expr
    holds: bool

    def __new__(cls, atom: Expr, holds: bool = True) -> Literal:  # noqa: FBT001, FBT002, PYI034 - as it is read, and none is of a subclass
        """The one literal of an atom, which holds or does not."""
        found = cls._known.get((atom, holds))
        if found is None:
            found = object.__new__(cls)
            found.atom = atom
            found.holds = holds
            found.varies = atom.varies
            found.loops = atom.loops
            found.size = 1
            found.serial = next(_SERIALS)
            cls._known[atom, holds] = found
        return found

    def __str__(self) -> str:
        return show(self.atom) if self.holds else f"not {show(self.atom)}"


class Several(Condition):
    """All of some conditions, or any of them. Only "all of" holds something unsure, as one part of its own."""

    __slots__ = ("all_of", "ordered", "parts", "unsure")
    _known: ClassVar[dict[tuple[bool, frozenset[Condition]], Several]] = {}

    all_of: bool
    parts: frozenset[Condition]
    ordered: tuple[Condition, ...]
    """The parts, in the order in which they were made."""
    unsure: bool

    def __new__(cls, all_of: bool, parts: frozenset[Condition]) -> Several:  # noqa: FBT001, PYI034 - which of the two, and none is of a subclass
        """The one condition of some parts."""
        found = cls._known.get((all_of, parts))
        if found is None:
            found = object.__new__(cls)
            found.all_of = all_of
            found.parts = parts
            found.ordered = tuple(sorted(parts, key=lambda part: part.serial))
            found.varies = any(part.varies for part in parts)
            found.loops = frozenset().union(*(part.loops for part in parts))
            found.size = sum(part.size for part in parts)
            found.unsure = any(isinstance(part, Plain) for part in parts)
            found.serial = next(_SERIALS)
            cls._known[all_of, parts] = found
        return found

    def __str__(self) -> str:
        return "(" + (" and " if self.all_of else " or ").join(sorted(map(str, self.parts))) + ")"


TRUE = Plain("always")
FALSE = Plain("never")
MAYBE = Plain("maybe")
MAYBE_HERE = Plain("maybe on some ranks", varies=True)

_COMBINED: dict[tuple[bool, frozenset[Condition]], Condition] = {}
_OPPOSITES: dict[Condition, Condition] = {}


def options_of(value: Value) -> list[tuple[Condition, Value]]:
    """The values that a value may be with their conditions, without nothing."""
    if isinstance(value, Choice):
        return [(condition, option) for condition, option in value.options if option is not UNBOUND]
    return [] if value is UNBOUND else [(TRUE, value)]


def forget() -> None:
    """Let go of the values and conditions of former runs: to be called between scripts that nobody compares."""
    Interning.forget()
    Literal._known.clear()  # noqa: SLF001 - of this module
    Several._known.clear()  # noqa: SLF001
    _COMBINED.clear()
    _OPPOSITES.clear()


def unknown(*, varies: bool) -> Condition:
    """The condition of which nothing is known, but whether all ranks agree."""
    return MAYBE_HERE if varies else MAYBE


def negate(condition: Condition) -> Condition:
    """The opposite of a condition."""
    match condition:
        case Literal():
            return Literal(condition.atom, not condition.holds)
        case Several():
            found = _OPPOSITES.get(condition)
            if found is None:
                found = _OPPOSITES[condition] = _several(not condition.all_of, frozenset(map(negate, condition.parts)))
            return found
    return FALSE if condition is TRUE else TRUE if condition is FALSE else condition


def both(*conditions: Condition) -> Condition:
    """All of some conditions."""
    return _several(True, frozenset(conditions))  # noqa: FBT003 - all of them


def either(*conditions: Condition) -> Condition:
    """Any of some conditions."""
    return _several(False, frozenset(conditions))  # noqa: FBT003 - any of them


def _several(all_of: bool, conditions: frozenset[Condition]) -> Condition:  # noqa: FBT001 - which of the two
    if not conditions:
        return TRUE if all_of else FALSE
    if len(conditions) == 1:
        return next(iter(conditions))
    key = (all_of, conditions)
    found = _COMBINED.get(key)
    if found is None:
        found = _COMBINED[key] = _combined(all_of, conditions)
    return found


def _combined(all_of: bool, conditions: frozenset[Condition]) -> Condition:  # noqa: FBT001
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
    for part in parts:
        opposite = negate(part) if isinstance(part, Several) and not part.unsure else None
        if isinstance(opposite, Several) and opposite.parts <= parts:  # not (a or b), whose parts are among the others
            return absorbing
    parts = _exclusive(all_of, parts)
    if absorbing in parts:
        return absorbing
    vague = [part for part in parts if isinstance(part, Plain) or (isinstance(part, Several) and part.unsure)]
    if vague and not all_of:
        # two that are not known are not one: of "a or (a and b)" there is no a
        return unknown(varies=any(part.varies for part in parts))
    for reduced in (_absorbed, _joined):
        left = reduced(all_of, parts)
        if left != parts:
            return _several(all_of, frozenset(left))
    if not parts:
        return neutral
    if len(parts) == 1:
        return next(iter(parts))
    if len(vague) > 1:
        parts = (parts - set(vague)) | {unknown(varies=any(part.varies for part in vague))}
    made = Several(all_of, frozenset(parts))
    return made if made.size <= LARGEST else unknown(varies=made.varies)


def _absorbed(all_of: bool, parts: set[Condition]) -> set[Condition]:  # noqa: FBT001
    """Without what the rest says already: of "a and (a or b)" a is left, of "a and (not a or b)" a and b."""
    sure = {part for part in parts if isinstance(part, Literal) or (isinstance(part, Several) and not part.unsure)}
    if len(parts) < 2 or (all(isinstance(part, Literal) for part in sure) and len(sure) == len(parts)):
        return parts
    found: set[Condition] = set()
    for part in parts:
        if isinstance(part, Several) and part.all_of is not all_of:
            if part.parts & sure:
                continue
            left = frozenset(
                one for one in part.parts if not (isinstance(one, Literal | Several) and negate(one) in sure)
            )
            if len(left) < len(part.parts):
                part = _several(not all_of, left) if left else (FALSE if all_of else TRUE)  # noqa: PLW2901 - what is left
                if part is (FALSE if all_of else TRUE):
                    return {part}
                if isinstance(part, Several) and part.all_of is all_of:
                    found |= part.parts
                    continue
        found.add(part)
    return found


def _exclusive(all_of: bool, parts: set[Condition]) -> set[Condition]:  # noqa: FBT001
    """Without what follows from a thing being one constant: it is no other one, and true or false as that is."""
    known: dict[Value, Const] = {}
    for part in parts:
        if isinstance(part, Literal) and part.holds is all_of and is_identity(part.atom):
            subject, constant = part.atom.args
            before = known.setdefault(subject, constant)
            if before.value != constant.value:
                return {FALSE if all_of else TRUE}
    if not known:
        return parts
    found = set()
    for part in parts:
        if isinstance(part, Literal) and part.atom in known:
            if (part.holds is all_of) is not bool(known[part.atom].value):
                return {FALSE if all_of else TRUE}
        elif (
            not (isinstance(part, Literal) and part.holds is not all_of and is_identity(part.atom))
            or known.get(part.atom.args[0], part.atom.args[1]).value == part.atom.args[1].value
        ):
            found.add(part)
    return found


def is_identity(atom: Expr) -> bool:
    """Whether an atom says that something is a constant."""
    return atom.op in _IDENTITY and isinstance(atom.args[1], Const)


_IDENTITY = frozenset({"==", "is"})


def _joined(all_of: bool, parts: set[Condition]) -> set[Condition]:  # noqa: FBT001
    """Of "(a and b) or (a and not b)" a is left, and of "a or (a and b)" too."""
    if not any(isinstance(part, Several) for part in parts) or len(parts) < 2:
        return parts
    terms = [
        part.parts if isinstance(part, Several) and part.all_of is not all_of else frozenset((part,))
        for part in sorted(parts, key=lambda part: part.serial)
    ]
    changed = False
    index = 0
    while index < len(terms):
        one = terms[index]
        for at in range(len(terms) - 1, index, -1):
            other = terms[at]
            apart = one ^ other
            if one <= other:
                del terms[at]
            elif other <= one:
                one = terms[index] = other
                del terms[at]
            elif len(one) == len(other) and len(apart) == 2 and _are_opposites(*apart):
                terms[index] = one & other
                del terms[at]
                changed, index = True, -1
                break
            else:
                continue
            changed = True
        index += 1
    return {_several(not all_of, term) for term in terms} if changed else parts


def _are_opposites(one: Condition, other: Condition) -> bool:
    return isinstance(one, Literal | Several) and negate(one) is other


def conjuncts(condition: Condition) -> tuple[Condition, ...]:
    """The conditions that have to hold together for one to hold."""
    return condition.ordered if isinstance(condition, Several) and condition.all_of else (condition,)


def literals_of(condition: Condition) -> Iterator[Literal]:
    """The literals that hold wherever a condition does."""
    if isinstance(condition, Literal):
        yield condition
    elif isinstance(condition, Several) and condition.all_of:
        yield from (part for part in condition.ordered if isinstance(part, Literal))


def atoms_of(condition: Condition) -> Iterator[Expr]:
    """Every atom of a condition."""
    if isinstance(condition, Literal):
        yield condition.atom
    elif isinstance(condition, Several):
        for part in condition.ordered:
            yield from atoms_of(part)


class Assumed:
    """What is taken for given at a place: which atoms hold, and which things are which constants.

    ``noting`` writes down what is asked, so that an answer is known to hold wherever these questions are answered so.
    """

    __slots__ = ("_equal", "_known", "_notes", "_trail", "_watched")

    def __init__(self, atoms: Mapping[Expr, bool] | None = None) -> None:
        self._known: dict[Expr, tuple[bool, int]] = {}
        self._equal: dict[Value, tuple[Const, int]] = {}
        self._watched: dict[Value, list[tuple[Several, int]]] = {}
        self._trail: list[Expr | Several] = []
        self._notes: list[tuple[int, Consulted]] = []
        for atom, holds in (atoms or {}).items():
            self._add(atom, holds=holds)

    def mark(self) -> int:
        """How much is taken for given by now, for ``forget``."""
        return len(self._trail)

    def add(self, condition: Condition) -> None:
        """Take a condition for given, until ``forget``."""
        for part in condition.ordered if isinstance(condition, Several) and condition.all_of else (condition,):
            if isinstance(part, Literal):
                self._add(part.atom, holds=part.holds)
            elif isinstance(part, Several) and not part.unsure:
                at = len(self._trail)
                self._trail.append(part)
                for thing in _about(part):
                    self._watched.setdefault(thing, []).append((part, at))

    def _add(self, atom: Expr, *, holds: bool) -> None:
        if atom in self._known:
            return
        at = len(self._trail)
        self._trail.append(atom)
        self._known[atom] = (holds, at)
        if holds and is_identity(atom):
            self._equal.setdefault(atom.args[0], (atom.args[1], at))

    def forget(self, mark: int) -> None:
        """Take nothing for given that was not at a mark."""
        while len(self._trail) > mark:
            last = self._trail.pop()
            if isinstance(last, Several):
                for thing in _about(last):
                    self._watched[thing].pop()
                continue
            del self._known[last]
            if is_identity(last) and self._equal.get(last.args[0], (None, -1))[1] == len(self._trail):
                del self._equal[last.args[0]]

    def ask(self, atom: Expr) -> bool | None:
        """Whether an atom holds; None where that does not follow."""
        found = self._answer(atom)
        if self._notes:
            mark, noted = self._notes[-1]
            if found is None or found[1] < mark:
                noted[atom] = found
        return None if found is None else found[0]

    def is_as(self, consulted: Consulted) -> bool:
        """Whether all that was asked is answered here as it was."""
        for atom, answer in consulted.items():
            found = self._answer(atom)
            if (found is None) is not (answer is None) or (found and answer and found[0] is not answer[0]):
                return False
        return True

    @contextmanager
    def noting(self) -> Iterator[Consulted]:
        """Note what is asked, as far as the answer was known before."""
        noted: Consulted = {}
        self._notes.append((len(self._trail), noted))
        try:
            yield noted
        finally:
            self._notes.pop()
            self.note(noted)

    def note(self, consulted: Consulted) -> None:
        """Note questions that have been asked; the answers are those of here."""
        if self._notes:
            for atom in consulted:
                self.ask(atom)

    def _answer(self, atom: Expr) -> tuple[bool, int] | None:
        """Whether an atom holds, and since which mark: also what ``x == "a"`` says of ``x == "b"`` and of ``x``."""
        found = self._known.get(atom)
        if found is not None:
            return found
        subject = atom.args[0] if is_identity(atom) else None
        if subject is not None:
            value = atom.args[1]
            equal = self._equal.get(subject)
            if equal is not None:
                return equal[0].value == value.value, equal[1]
            known = self._known.get(subject) if isinstance(subject, Expr) else None
            if known is not None and bool(value.value) is not known[0] and (known[0] or atom.op == "=="):
                return False, known[1]
        else:
            equal = self._equal.get(atom)
            if equal is not None:
                return bool(equal[0].value), equal[1]
        for thing in (atom,) if subject is None else (atom, subject):
            for clause, at in self._watched.get(thing, ()):
                for holds in (True, False):
                    if all(self._fails(part, atom, holds=not holds) for part in clause.parts):
                        return holds, at
        return None

    def _fails(self, part: Condition, atom: Expr, *, holds: bool) -> bool:
        """Whether a part of a clause does not hold if an atom does, or does not."""
        if not isinstance(part, Literal):
            return False
        if part.atom is atom:
            return part.holds is not holds
        if holds and part.holds and is_identity(atom) and is_identity(part.atom) and part.atom.args[0] is atom.args[0]:
            return bool(part.atom.args[1].value != atom.args[1].value)
        known = self._known.get(part.atom)
        return known is not None and known[0] is not part.holds


def _about(clause: Several) -> set[Value]:
    """The atoms of a clause, and what they say to be a constant."""
    atoms = {part.atom for part in clause.parts if isinstance(part, Literal)}
    return atoms | {atom.args[0] for atom in atoms if is_identity(atom)}


Consulted: TypeAlias = "dict[Expr, tuple[bool, int] | None]"
"""What was asked, and the answers, with the mark since which they are known."""


def decided(condition: Condition, assumed: Assumed | Mapping[Expr, bool]) -> bool | None:
    """Whether a condition holds where some atoms are known; None where that does not follow."""
    if not isinstance(assumed, Assumed):
        assumed = Assumed(assumed)
    match condition:
        case Literal():
            known = assumed.ask(condition.atom)
            return None if known is None else known is condition.holds
        case Several(all_of=True):
            return _all(decided(part, assumed) for part in condition.parts)
        case Several():
            found = _all(_opposite(decided(part, assumed)) for part in condition.parts)
            return _opposite(found)
    return True if condition is TRUE else False if condition is FALSE else None


def _opposite(found: bool | None) -> bool | None:  # noqa: FBT001 - what is turned round
    return None if found is None else not found


def _all(found: Iterable[bool | None]) -> bool | None:
    result: bool | None = True
    for one in found:
        if one is False:
            return False
        if one is None:
            result = None
    return result


def under(condition: Condition, assumed: Assumed | Mapping[Expr, bool]) -> Condition:
    """What is left of a condition where some atoms are known."""
    if not isinstance(assumed, Assumed):
        assumed = Assumed(assumed)
    if isinstance(condition, Literal):
        known = assumed.ask(condition.atom)
        return condition if known is None else TRUE if known is condition.holds else FALSE
    if isinstance(condition, Several):
        parts = [under(part, assumed) for part in condition.parts]
        if any(left is not part for left, part in zip(parts, condition.parts, strict=True)):
            return _several(condition.all_of, frozenset(parts))
    return condition


def is_unsure(condition: Condition) -> bool:
    """Whether a condition holds something of which nothing is known."""
    return condition.unsure if isinstance(condition, Several) else condition in {MAYBE, MAYBE_HERE}


_MOST_ATOMS = 8


def implied(condition: Condition, given: Condition) -> bool | None:
    """Whether a condition holds wherever another one does (False: it holds nowhere there); None where neither is known."""
    if isinstance(condition, Plain):  # MAYBE is another one each time
        return True if condition is TRUE else False if condition is FALSE else None
    if not (isinstance(condition, Several) and condition.unsure) and condition in {given, negate(given)}:
        return condition is given
    atoms = list(dict.fromkeys((*atoms_of(condition), *atoms_of(given))))
    if len(atoms) > _MOST_ATOMS:
        return decided(condition, {literal.atom: literal.holds for literal in literals_of(given)})
    found: set[bool | None] = set()
    for values in itertools.product((True, False), repeat=len(atoms)):
        assumed = Assumed(dict(zip(atoms, values, strict=True)))
        if decided(given, assumed) is not False:
            found.add(decided(condition, assumed))
    return found.pop() if len(found) == 1 else None


def left_of(condition: Condition, given: Condition) -> Condition:
    """What is left to say of a condition where another one holds."""
    known = implied(condition, given)
    if known is not None:
        return TRUE if known else FALSE
    left = under(condition, {literal.atom: literal.holds for literal in literals_of(given)})
    if isinstance(left, Several) and left.all_of:
        return both(*(part for part in left.parts if implied(part, given) is not True))
    return left


def outside(condition: Condition, loop: ast.AST) -> Condition:
    """A condition as it is seen from outside of a loop: what changes from turn to turn is not known there."""
    if loop not in condition.loops:
        return condition
    if isinstance(condition, Several):
        return _several(condition.all_of, frozenset(outside(part, loop) for part in condition.parts))
    return unknown(varies=condition.varies)
