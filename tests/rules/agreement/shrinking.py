"""The smallest config on which rules and DeepSpeed still differ in the same way."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from .case import Config
from .compare import Ask, Row, row

ROUNDS = 40
Place = tuple[str, ...]


def shrink(rows: Sequence[Row], ask: Ask) -> list[Row]:
    """Return the rows with members taken out as long as verdict, error, and kind of difference stay the same."""
    current = [replace(one, case=replace(one.case, config=one.case.data, text=None)) for one in rows]
    for _ in range(ROUNDS):
        alone = [(index, [place]) for index, one in enumerate(current) for place in places(one.case.config or {})]
        dropped: dict[int, list[Place]] = {}
        for index, one in _still(alone, current, rows, ask):
            dropped.setdefault(index, []).extend(one)
        together = dict(_still(list(dropped.items()), current, rows, ask))
        if not dropped:
            break
        for index, those in dropped.items():
            current[index] = _smaller(current[index], together.get(index, those[:1]))
    return current


def _still(
    tried: Sequence[tuple[int, list[Place]]], current: Sequence[Row], first: Sequence[Row], ask: Ask
) -> Iterator[tuple[int, list[Place]]]:
    """Yield those of ``tried``, rows by number with places to take out, that leave the difference as it was."""
    made = [_smaller(current[index], those) for index, those in tried]
    for (index, those), one, answer in zip(tried, made, ask([one.case for one in made]), strict=True):
        if answer == first[index].answer and _same(row(one.case, answer), first[index]):
            yield index, those


def _smaller(one: Row, those: Sequence[Place]) -> Row:
    return replace(one, case=replace(one.case, config=without(one.case.config, those)))


def _same(smaller: Row, first: Row) -> bool:
    if first.answer.refused:
        return smaller.outcome == first.outcome or not smaller.findings
    return (smaller.outcome, smaller.what) == (first.outcome, first.what)


def places(config: Config, before: Place = ()) -> Iterator[Place]:
    """Yield the place of every member, outermost first."""
    yield from ((*before, name) for name in config)
    for name, inner in config.items():
        if isinstance(inner, dict):
            yield from places(inner, (*before, name))


def without(config: Config | None, those: Sequence[Place]) -> Config:
    """Return a config without some of its members."""
    done: Config = copy.deepcopy(config or {})
    for place in those:
        holder: Any = done
        for name in place[:-1]:
            holder = holder.get(name, {})
        holder.pop(place[-1], None)
    return done
