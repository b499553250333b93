"""The state of a run: what names, attributes and items hold. Writes are noted, so that an arm can be taken back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from dsmigrate.codemod.analysis.conditions import FALSE, MAYBE, Condition, both, either, unknown
from dsmigrate.codemod.analysis.values import (
    TRUE_VALUE,
    UNBOUND,
    Choice,
    Const,
    Expr,
    Kind,
    Obj,
    Tensor,
    TensorKind,
    Value,
    joined_tensor,
    loops_of,
    may_vary,
)

Place: TypeAlias = tuple[Obj, Any]
Changes: TypeAlias = dict[Place, Value]
Meeting: TypeAlias = "tuple[object, ...]"
"""Where several ways meet: the statement, and the calls that lead to it."""

_HERE: list[object] = [None, None]
"""The expression that is being worked out, and the calls that lead to it."""


def is_at(node: object, context: object) -> None:
    """Note which expression is being worked out."""
    _HERE[:] = node, context


WIDEST = 8
"""Values that one place may have at once under conditions; of more, the conditions are forgotten, then plain data."""


class State:
    """Fields of objects and what they were before, in the order of the writes."""

    def __init__(self, made: Obj | None = None) -> None:
        self._before: list[tuple[Obj, Any, Value, int]] = []
        self.made = made or Obj(Kind.FRAME, None, None)
        """Holds the things that have been made on the way here."""
        self._versions: dict[tuple[int, Any, Value], int] = {}

    def mark(self) -> int:
        """How many writes there have been, for ``changes`` and ``undo``."""
        return len(self._before)

    def put(self, obj: Obj, key: Any, value: Value) -> None:
        """Write a field of a thing; what it was before is kept."""
        fields = obj.own
        before = fields.get(key, UNBOUND)
        if before is value or (before == value and type(before) is type(value)):
            return
        self._before.append((obj, key, before, obj.version))
        if value is UNBOUND:
            fields.pop(key, None)
        else:
            fields[key] = value
        if not fields:
            obj.version = 0
        else:
            step = (obj.version, key, value)
            obj.version = self._versions.setdefault(step, len(self._versions) + 1)

    def make(self, obj: Obj) -> None:
        """Note that a thing has been made on the way here."""
        obj.is_made_on_the_way = True
        self.put(self.made, obj, TRUE_VALUE)

    def new_things(self, places: Iterable[Place]) -> set[Obj]:
        """The things of some places that have not been made yet; things that nobody makes have always been."""
        return {obj for obj, _ in places if obj.is_made_on_the_way and obj not in self.made.own}

    def changes(self, mark: int) -> Changes:
        """What was written since a mark, as it is now."""
        return {(obj, key): obj.own.get(key, UNBOUND) for obj, key, _, _ in self._before[mark:]}

    def written(self, mark: int) -> dict[Place, list[Value]]:
        """All that the places which were written since a mark have held from then on."""
        found: dict[Place, dict[Value, None]] = {}
        for obj, key, before, _ in self._before[mark:]:
            found.setdefault((obj, key), {})[before] = None
        for (obj, key), values in found.items():
            values[obj.own.get(key, UNBOUND)] = None
        return {place: list(values) for place, values in found.items()}

    def may_be(self, written: Mapping[Place, Sequence[Value]], at: Meeting) -> None:
        """Let places hold any of some values."""
        new_things = self.new_things(written)
        for (obj, key), values in written.items():
            held = [value for value in values if value is not UNBOUND or obj not in new_things]
            self.put(obj, key, choose([(MAYBE, value) for value in held], (*at, obj.node, key)))

    def versions_at(self, mark: int, things: Iterable[Obj]) -> dict[Obj, int]:
        """Which version some things had at a mark."""
        found = {obj: obj.version for obj in things}
        for obj, _, _, version in reversed(self._before[mark:]):
            if obj in found:
                found[obj] = version
        return found

    def values_at(self, mark: int, places: Iterable[Place]) -> Changes:
        """What some places held at a mark."""
        found = {(obj, key): obj.own.get(key, UNBOUND) for obj, key in places}
        for obj, key, before, _ in reversed(self._before[mark:]):
            if (obj, key) in found:
                found[obj, key] = before
        return found

    def undo(self, mark: int) -> None:
        """Take back all writes since a mark."""
        before = self._before
        while len(before) > mark:
            obj, key, value, version = before.pop()
            if value is UNBOUND:
                obj.own.pop(key, None)
            else:
                obj.own[key] = value
            obj.version = version

    def apply(self, changes: Changes) -> None:
        """Make changes that were made elsewhere."""
        for (obj, key), value in changes.items():
            self.put(obj, key, value)

    def merge(self, outcomes: Sequence[tuple[Condition, Changes]], at: Meeting) -> None:
        """Go on from where several ways meet, each from the present state with its changes."""
        if len(outcomes) == 1:
            self.apply(outcomes[0][1])
            return
        places: dict[Place, None] = {}
        for _, changes in outcomes:
            places.update(dict.fromkeys(changes))
        new_things = self.new_things(places)
        for place in places:
            obj, key = place
            there = outcomes if obj not in new_things else [one for one in outcomes if (self.made, obj) in one[1]]
            always = all(place in changes for _, changes in there)
            now = UNBOUND if always else (obj.own if obj is self.made else obj).get(key, UNBOUND)
            options = [(condition, changes.get(place, now)) for condition, changes in there]
            self.put(obj, key, choose(options, (*at, obj.node, key)))


def filled(value: Value, rest: Value) -> Value:
    """What something holds that holds ``rest`` on the ways on which nothing was written."""
    if not isinstance(value, Choice):
        return rest if value is UNBOUND else value
    return choose((condition, rest if option is UNBOUND else option) for condition, option in value.options)


def choose(options: Iterable[tuple[Condition, Value]], at: Meeting = ()) -> Value:
    """The value that is one of several, each under its condition; UNBOUND where there is none.

    ``at`` says where they meet and what they are of: so is known what is one of too many.
    """
    found: dict[Value, Condition] = {}
    data: Tensor | None = None
    options = list(options)
    if options and all(value is options[0][1] for _, value in options):
        return options[0][1]
    for condition, value in options:
        inner = value.options if isinstance(value, Choice) else ((None, value),)
        for more, one in inner:
            together = condition if more is None else both(condition, more)
            if together is FALSE:
                continue
            if isinstance(one, Tensor) and one.kind is TensorKind.DATA:
                if data is None:
                    data = one
                elif data != one:
                    before, joined = found.pop(data), replace(joined_tensor([data, one]), given=data.given | one.given)
                    found[joined] = before
                    data = joined
                one = data  # noqa: PLW2901 - tensors of data are one
            found[one] = either(found[one], together) if one in found else together
    if not found:
        return UNBOUND
    if len(found) == 1:
        return next(iter(found))
    if len(found) > WIDEST:
        found = _narrowed(found, at)
        if len(found) == 1:
            return next(iter(found))
    return Choice(tuple((condition, value) for value, condition in found.items()))


def _narrowed(found: dict[Value, Condition], at: Meeting) -> dict[Value, Condition]:
    """Fewer values: plain data becomes one unknown, things stay."""
    kept: dict[Value, Condition] = {}
    plain: list[Value] = []
    for value, condition in found.items():
        if isinstance(value, Const | Expr):
            plain.append(value)
        else:
            kept[value] = condition
    if plain:
        varies = any(map(may_vary, plain)) or any(condition.varies for condition in found.values())
        known = [value for value in plain if isinstance(value, Expr) and value.op == "one of"]
        where = at or (*_HERE, plain[0])
        kept[known[0] if known else Expr("one of", *where, varies=varies, loops=loops_of(plain))] = unknown(
            varies=varies
        )
    return kept
