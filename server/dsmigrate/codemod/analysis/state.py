"""The state of a run: what names, attributes and items hold. Writes are noted, so that an arm can be taken back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from dsmigrate.codemod.analysis.conditions import FALSE, MAYBE, Condition, both, either, unknown
from dsmigrate.codemod.analysis.values import (
    UNBOUND,
    Choice,
    Const,
    Expr,
    Obj,
    Tensor,
    TensorKind,
    Value,
    joined_tensor,
)

Place: TypeAlias = tuple[Obj, Any]
Changes: TypeAlias = dict[Place, Value]

WIDEST = 8
"""Values that one place may have at once under conditions; of more, the conditions are forgotten, then plain data."""


class State:
    """Fields of objects and what they were before, in the order of the writes."""

    def __init__(self) -> None:
        self._before: list[tuple[Obj, Any, Value, int]] = []
        self._versions: dict[tuple[int, Any, Value], int] = {}

    def mark(self) -> int:
        return len(self._before)

    def put(self, obj: Obj, key: Any, value: Value) -> None:
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

    def changes(self, mark: int) -> Changes:
        """What was written since a mark, as it is now."""
        return {(obj, key): obj.own.get(key, UNBOUND) for obj, key, _, _ in self._before[mark:]}

    def versions_at(self, mark: int, things: Iterable[Obj]) -> dict[Obj, int]:
        """Which version some things had at a mark."""
        found = {obj: obj.version for obj in things}
        for obj, _, _, version in reversed(self._before[mark:]):
            if obj in found:
                found[obj] = version
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
        for (obj, key), value in changes.items():
            self.put(obj, key, value)

    def merge(self, outcomes: Sequence[tuple[Condition, Changes]], born: int | None = None) -> None:
        """Go on from where several ways meet, each from the present state with its changes.

        ``born``: what was made later than that many objects was made on the ways; only those that made it know of it.
        """
        if len(outcomes) == 1:
            self.apply(outcomes[0][1])
            return
        places: dict[Place, None] = {}
        for _, changes in outcomes:
            places.update(dict.fromkeys(changes))
        knowing: dict[Obj, list[tuple[Condition, Changes]]] = {}
        if born is not None:
            for condition, changes in outcomes:
                for obj in {obj for obj, _ in changes if obj.born > born}:
                    knowing.setdefault(obj, []).append((condition, changes))
        for place in places:
            obj, key = place
            now = obj.own.get(key, UNBOUND)
            known = knowing.get(obj, outcomes)
            self.put(obj, key, choose((condition, changes.get(place, now)) for condition, changes in known))


def choose(options: Iterable[tuple[Condition, Value]]) -> Value:
    """The value that is one of several, each under its condition; UNBOUND where there is none."""
    found: dict[Value, Condition] = {}
    data: Tensor | None = None
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
                    before, joined = found.pop(data), joined_tensor([data, one])
                    found[joined] = before
                    data = joined
                one = data  # noqa: PLW2901 - tensors of data are one
            found[one] = either(found[one], together) if one in found else together
    if not found:
        return UNBOUND
    if len(found) == 1:
        return next(iter(found))
    if len(found) > WIDEST:
        found = _narrowed(found)
        if len(found) == 1:
            return next(iter(found))
    return Choice(tuple((condition, value) for value, condition in found.items()))


def _narrowed(found: dict[Value, Condition]) -> dict[Value, Condition]:
    """Fewer values: plain data becomes one unknown, things stay, without their conditions."""
    kept: dict[Value, Condition] = {}
    plain: list[Value] = []
    for value in found:
        if isinstance(value, Const | Expr):
            plain.append(value)
        else:
            kept[value] = MAYBE
    if plain:
        varies = any(isinstance(value, Expr) and value.varies for value in plain) or any(
            c.varies for c in found.values()
        )
        loops = frozenset().union(*(value.loops for value in plain if isinstance(value, Expr)))
        kept[Expr("one of", *sorted(map(repr, plain))[:WIDEST], varies=varies, loops=loops)] = unknown(varies=varies)
    return kept
