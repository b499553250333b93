"""Whether DeepSpeed refuses a value beside what the file says: by ``refused.toml``, and by what is required.

Rules tell of such combinations when they are there; completion has to know before, and cheaply.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dsmigrate.document import parse
from dsmigrate.editing.completion import classes
from dsmigrate.editing.completion.choices import Choice
from dsmigrate.editing.completion.data import Skeleton, Starter
from dsmigrate.editing.completion.situation import Situation, normal, other_names
from dsmigrate.editing.view import View
from dsmigrate.knowledge import MISSING, Consumer, Key, Knowledge, Status, store
from dsmigrate.knowledge.versions import order
from dsmigrate.rules import Settings
from dsmigrate.rules.context import UNKNOWN

Assigned = Mapping[str, object]


class Condition:
    """A path, an operator, and what it is compared with; refused.toml says what they mean. Compared by identity.

    ``sections`` are the names at the top of a file that decide it, ``absent`` whether it holds without any of them,
    None until somebody asks; ``assigned`` are the values that are not looked up.
    """

    __slots__ = ("absent", "assigned", "operand", "operator", "path", "sections")

    def __init__(self, path: str, operator: str, operand: Any, assigned: Assigned = MappingProxyType({})) -> None:  # noqa: ANN401 - a scalar, a list or a path
        self.path = path
        self.operator = operator
        self.operand = operand
        self.assigned = assigned
        self.sections = _sections(path) | (_sections(operand) if isinstance(operand, str) else frozenset())
        self.absent: bool | None = None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.path, self.operator, self.operand))


def _sections(path: str) -> frozenset[str]:
    top = path.partition(".")[0]
    return frozenset({top, *other_names().get(top, ())})


Left = tuple[tuple[Condition, ...], ...]
"""Refusals whose conditions on new values hold, each as the conditions that the file decides."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Conditions that DeepSpeed refuses when all of them hold; ``code`` is the rule that tells."""

    code: str
    conditions: tuple[Condition, ...]


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
    table = _by_path(known, consumer)
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
    if path not in assigned and not compared and _unless(path, known, consumer) not in assigned:
        return condition
    return _for_reader(Condition(path, operator, operand, assigned), known, consumer)


def _unless(path: str, known: Knowledge, consumer: Consumer) -> str:
    """Return the key whose presence keeps the consumer from writing a key of its own accord; "" for none."""
    auto = None if consumer is Consumer.DEEPSPEED else known.auto(path, consumer)
    return auto.unless if auto is not None and auto.overwrites else ""


def _for_reader(condition: Condition, known: Knowledge, consumer: Consumer) -> Condition:
    unless = _unless(condition.path, known, consumer)
    if unless:
        condition.sections |= _sections(unless)
    return condition


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
    if assigned and _unless(path, situation.known, situation.consumer) in assigned:
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


@functools.lru_cache(maxsize=64)
def _by_path(known: Knowledge, consumer: Consumer) -> Mapping[str, tuple[Refusal, ...]]:
    found: dict[str, tuple[Refusal, ...]] = {}
    for refusal in (*_listed(known, consumer), *_required(known), *_superseded(known), *_foreign(known)):
        for condition in refusal.conditions:
            _for_reader(condition, known, consumer)
        for path in {*(one.path for one in refusal.conditions), *_operands(refusal)}:
            found[path] = (*found.get(path, ()), refusal)
    return found


def _operands(refusal: Refusal) -> Iterator[str]:
    for one in refusal.conditions:
        if one.operator in {"above", "below"} and isinstance(one.operand, str):
            yield one.operand


def _refusal(code: str, *conditions: tuple[str, str, Any]) -> Refusal:
    return Refusal(code, tuple(Condition(*condition) for condition in conditions))


def _listed(known: Knowledge, consumer: Consumer) -> Iterator[Refusal]:
    now = order(known.version)
    for table in store.load("completion")["refused"]:
        until = table.get("until")
        if order(table.get("since", "0.9.0")) > now or (until is not None and order(until) <= now):
            continue
        if consumer.value in table.get("consumers", (consumer.value,)):
            yield _refusal(
                table["code"], *((path, *next(iter(wanted.items()))) for path, wanted in table["when"].items())
            )


def _required(known: Knowledge) -> Iterator[Refusal]:
    """Yield that a section without a key that it must hold is refused."""
    for key in _keys(known):
        if key.required_when is not None and key.status is Status.PRESENT:
            conditions = [(path, "in", list(values)) for path, values in key.required_when.items()]
            yield _refusal("DS116", *conditions, (key.parent, "given", True), (key.path, "given", False))


def _superseded(known: Knowledge) -> Iterator[Refusal]:
    """Yield that a deprecated key beside its one successor is refused."""
    for key in _keys(known):
        if key.status is Status.DEPRECATED and len(key.successors) == 1:
            yield _refusal("DS112", (key.path, "given", True), (key.successors[0], "given", True))


def _foreign(known: Knowledge) -> Iterator[Refusal]:
    """Yield that a type is refused with parameters of another class, and without those that it needs."""
    for conditions in classes.foreign(known):
        yield _refusal("DS630", *conditions)
    for conditions in classes.incomplete(known):
        yield _refusal("DS635" if conditions[0][0] == "optimizer.type" else "DS725", *conditions)


def _keys(known: Knowledge) -> Iterable[Key]:
    found = (known.key(path) for path in known.every_path())
    return [key for key in found if key is not None]
