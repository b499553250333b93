"""Whether DeepSpeed refuses a value beside what the file says: by ``refused.toml``, and by what is required.

Rules tell of such combinations when they are there; completion has to know before, and cheaply.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dsmigrate.document import parse
from dsmigrate.editing.completion.choices import Choice
from dsmigrate.editing.completion.data import Skeleton, Starter
from dsmigrate.editing.completion.refused import Assigned, Condition, by_path, for_reader, unless
from dsmigrate.editing.completion.situation import Situation, normal
from dsmigrate.editing.view import View
from dsmigrate.knowledge import MISSING, Consumer, Knowledge
from dsmigrate.rules import Settings
from dsmigrate.rules.context import UNKNOWN

Left = tuple[tuple[Condition, ...], ...]
"""Refusals whose conditions on new values hold, each as the conditions that the file decides."""


def is_refused(situation: Situation, assigned: Assigned) -> bool:
    """Return whether the values of ``assigned``, by path, make a combination that DeepSpeed refuses.

    A section that comes with them is there with the value None; a key that goes has the value MISSING.
    """
    return holds(situation, left(assigned, situation.known, situation.consumer))


def is_choice_refused(situation: Situation, path: str, choice: Choice) -> bool:
    """Return the same for a single value, for which most of the work is done once."""
    memory, asked = choice.memory, path + situation.reader
    if asked not in memory:
        memory[asked] = left({path: choice.value}, situation.known, situation.consumer)
    return holds(situation, memory[asked])


def is_start_refused(situation: Situation, start: Skeleton | Starter) -> bool:
    """Return the same for a section or a file that is ready to use, for which most of the work is done once."""
    memory = start.memory
    if situation.reader not in memory:
        memory[situation.reader] = left(start.leaves, situation.known, situation.consumer)
    return holds(situation, memory[situation.reader])


def left(assigned: Assigned, known: Knowledge, consumer: Consumer) -> Left:
    """Return for each refusal that ``assigned`` may come to what the rest of the file has to say to it."""
    table = by_path(known, consumer)
    found: list[tuple[Condition, ...]] = []
    for refusal in dict.fromkeys(refusal for path in assigned for refusal in table.get(path, ())):
        rest: list[Condition] = []
        for condition in refusal.conditions:
            met = _met(condition, assigned, known, consumer)
            if met is False:
                break
            if met is None:
                rest.append(_bound(condition, assigned, known, consumer))
        else:
            found.append(tuple(rest))
    return tuple(found)


def _met(condition: Condition, assigned: Assigned, known: Knowledge, consumer: Consumer) -> bool | None:
    """Return whether a condition on an assigned key holds; None when the file decides."""
    path, operator, operand = condition
    if path not in assigned:
        return None
    value = assigned[path]
    if operator == "given":
        return (value is not MISSING) is operand
    if operator == "auto":
        return (value == "auto") is operand
    if operator == "splits" or (operator in {"above", "below"} and isinstance(operand, str)):
        return None
    value = _read(path, value, known, consumer)
    return value is not UNKNOWN and _compare(path, value, operator, operand, known)


def _bound(condition: Condition, assigned: Assigned, known: Knowledge, consumer: Consumer) -> Condition:
    """Return a condition that new values play a part in, together with these."""
    path, operator, operand = condition
    compared = isinstance(operand, str) and operand in assigned
    if path not in assigned and not compared and unless(path, known, consumer) not in assigned:
        return condition
    return for_reader(Condition(path, operator, operand, assigned), known, consumer)


def holds(situation: Situation, rest: Left) -> bool:
    """Return whether all conditions of any refusal hold in the file."""
    if not rest:
        return False
    known = situation.conditions
    for conditions in rest:
        for condition in conditions:
            met = known.get(condition)
            if met is None:
                away = condition.sections.isdisjoint(situation.names)
                met = known[condition] = _absent(condition, situation) if away else _holds(condition, situation)
            if not met:
                break
        else:
            return True
    return False


def _absent(condition: Condition, situation: Situation) -> bool:
    if condition.absent is None:
        condition.absent = _holds(condition, _nothing(situation.known, situation.consumer))
    return condition.absent


@functools.lru_cache(maxsize=64)
def _nothing(known: Knowledge, consumer: Consumer) -> Situation:
    document = parse("{}")
    return Situation(View(document, Settings(version=known.version, consumer=consumer)), document)


def _holds(condition: Condition, situation: Situation) -> bool:
    path, operator, operand = condition
    assigned = condition.assigned
    if operator == "given":
        return situation.gives(path) is operand
    if operator == "auto":
        return bool(situation.raw(path) == "auto") is operand
    value = _value(path, situation, assigned)
    if value is UNKNOWN:
        return False
    if operator == "splits":
        ranks = situation.facts.world_size
        return ranks is not None and _is_number(value) and value > 1 and (ranks % value == 0) is operand
    if operator in {"above", "below"} and isinstance(operand, str):
        operand = _value(operand, situation, assigned)
        if not _is_number(operand):
            return False
    return _compare(path, value, operator, operand, situation.known)


def _value(path: str, situation: Situation, assigned: Assigned) -> Any:  # noqa: ANN401 - whatever a config can hold
    if path in assigned:
        return _read(path, assigned[path], situation.known, situation.consumer)
    if assigned and unless(path, situation.known, situation.consumer) in assigned:
        raw = situation.raw(path)
        return normal(path, situation.known.default(path) if raw is MISSING else raw, situation.known)
    return situation.fact(path)


def _read(path: str, value: object, known: Knowledge, consumer: Consumer) -> Any:  # noqa: ANN401 - whatever a config can hold
    """Return what counts as the value of a key, from what is assigned to it."""
    if value is MISSING:
        return known.default(path)
    if value == "auto":
        auto = known.auto(path, consumer)
        if auto is not None and auto.works and auto.source:
            return UNKNOWN
    if path == "optimizer.type" and isinstance(value, str):
        facts = known.optimizer(value)
        return value if facts is None else facts.name
    return normal(path, value, known)


def _compare(path: str, value: Any, operator: str, operand: Any, known: Knowledge) -> bool:  # noqa: ANN401 - as above
    if operator == "odd":
        return isinstance(value, int) and (value % 2 == 1) is operand
    if operator == "is":
        look = known.optimizer if path.startswith("optimizer") else known.scheduler
        facts = look(value) if isinstance(value, str) else None
        return facts is not None and bool(facts.torch if operand == "torch" else facts.untested)
    return _OPERATORS[operator](value, operand)


def _is_in(value: object, wanted: Sequence[object]) -> bool:
    return any(value == one and isinstance(value, bool) is isinstance(one, bool) for one in wanted)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "in": _is_in,
    "not": lambda value, wanted: not _is_in(value, wanted),
    "null": lambda value, wanted: (value is None or value is MISSING) is wanted,
    "above": lambda value, limit: _is_number(value) and value > limit,
    "below": lambda value, limit: _is_number(value) and value < limit,
}
