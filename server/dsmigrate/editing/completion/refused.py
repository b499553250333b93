"""Combinations that DeepSpeed refuses, by the keys they are about: ``refused.toml``, and what follows from the keys."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dsmigrate.editing.completion import classes
from dsmigrate.editing.completion.situation import other_names
from dsmigrate.knowledge import Consumer, Key, Knowledge, Status, store
from dsmigrate.knowledge.versions import order

Assigned = Mapping[str, object]
"""New values by path: None for a section, MISSING for a key that goes."""


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


@dataclass(frozen=True, slots=True)
class Refusal:
    """Conditions that DeepSpeed refuses when all of them hold; ``code`` is the rule that tells."""

    code: str
    conditions: tuple[Condition, ...]


def unless(path: str, known: Knowledge, consumer: Consumer) -> str:
    """Return the key whose presence keeps the consumer from writing a key of its own accord; "" for none."""
    auto = None if consumer is Consumer.DEEPSPEED else known.auto(path, consumer)
    return auto.unless if auto is not None and auto.overwrites else ""


def for_reader(condition: Condition, known: Knowledge, consumer: Consumer) -> Condition:
    """Return a condition that knows of the other key which decides whether the consumer writes its own."""
    other = unless(condition.path, known, consumer)
    if other:
        condition.sections |= _sections(other)
    return condition


@functools.lru_cache(maxsize=64)
def by_path(known: Knowledge, consumer: Consumer) -> Mapping[str, tuple[Refusal, ...]]:
    """Return the combinations of a release and a reader that each key plays a part in."""
    found: dict[str, tuple[Refusal, ...]] = {}
    for refusal in (*_listed(known, consumer), *_required(known), *_superseded(known), *_foreign(known)):
        for condition in refusal.conditions:
            for_reader(condition, known, consumer)
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
