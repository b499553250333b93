"""The compiled facts that completion alone needs: starters, names, how common keys are."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsmigrate.knowledge import Consumer, Knowledge, Status, TypeFacts, store
from dsmigrate.knowledge.versions import order
from dsmigrate.languages import forgotten, say

NEVER_SEEN = 6
"""The rank of a key that no real config was found to have."""


@dataclass(frozen=True, slots=True, eq=False)
class Starter:
    """A section or a whole file, ready to use; compared by identity, so that what is made of it can be kept."""

    label: str
    summary: str
    value: Mapping[str, Any]
    path: str
    """The section; "" for a whole file."""
    consumer: Consumer | None
    """The only reader it is for; None for all."""
    leaves: Mapping[str, object]
    """The value of each key in it, by its path."""
    memory: dict[str, Any] = field(default_factory=dict)
    """What was worked out about it, for each reader."""


@dataclass(frozen=True, slots=True, eq=False)
class Skeleton:
    """The value of a section, with the value of each key in it by path; compared by identity."""

    value: Mapping[str, object]
    leaves: Mapping[str, object]
    memory: dict[str, Any] = field(default_factory=dict)


def rank(path: str) -> int:
    """Return how common a key is in its section, from 1 to NEVER_SEEN; ``stage=2`` is for a value of a key."""
    ranks: Mapping[str, int] = store.load("completion")["common"]
    return ranks.get(path, NEVER_SEEN)


@functools.lru_cache(maxsize=256)
def sections(path: str, known: Knowledge) -> tuple[Starter, ...]:
    """Return the starters of a section that the release takes."""
    table: Mapping[str, Any] = store.load("completion")["sections"].get(path, {})
    found = (_starter(label, facts, "value", path) for label, facts in table.items() if _fits(facts, known))
    return tuple(starter for starter in found if _is_known(starter, known))


@functools.lru_cache(maxsize=64)
def files(known: Knowledge, consumer: Consumer) -> tuple[Starter, ...]:
    """Return the whole-file starters for a reader, its own first."""
    table: Mapping[str, Any] = store.load("completion")["files"]
    found = [_starter(label, facts, "config", "") for label, facts in table.items() if _fits(facts, known)]
    fitting = [starter for starter in found if starter.consumer in {None, consumer} and _is_known(starter, known)]
    return tuple(sorted(fitting, key=lambda starter: starter.consumer is None))


@functools.lru_cache(maxsize=256)
def names(path: str) -> Mapping[str, str]:
    """Return names that a section of free names often has, with what each means."""
    table: Mapping[str, Mapping[str, str]] = store.load("completion")["names"]
    return {name: say(text) for name, text in table.get(path, {}).items()}


for _kept in (sections, files, names):
    forgotten(_kept.cache_clear)


def _fits(facts: Mapping[str, Any], known: Knowledge) -> bool:
    now = order(known.version)
    until = facts.get("until")
    return order(facts.get("since", "0.9.0")) <= now and (until is None or now < order(until))


def _is_known(starter: Starter, known: Knowledge) -> bool:
    """Return whether the release has every key, and every type with its parameters."""
    for path, value in starter.leaves.items():
        kind, _, name = path.partition(".params.")
        if name:
            facts = _type(kind, starter.leaves.get(f"{kind}.type"), known)
            if (
                facts is None
                or name not in facts.parameters
                or order(facts.parameters[name].since) > order(known.version)
            ):
                return False
        elif path in {"optimizer.type", "scheduler.type"} and _type(path.partition(".")[0], value, known) is None:
            return False
        else:
            key = known.key(path)
            if key is None and known.takes_any_name(path.rpartition(".")[0]):
                continue
            if key is None or key.status is not Status.PRESENT:
                return False
    return True


def _type(kind: str, name: object, known: Knowledge) -> TypeFacts | None:
    every = known.optimizers() if kind == "optimizer" else known.schedulers()
    return next((facts for facts in every if facts.name == name), None)


def _starter(label: str, facts: Mapping[str, Any], body: str, path: str) -> Starter:
    consumer = Consumer(facts["consumer"]) if "consumer" in facts else None
    return Starter(label, say(facts["summary"]), facts[body], path, consumer, dict(leaves(path, facts[body])))


def leaves(path: str, value: object) -> list[tuple[str, object]]:
    """Return path and value of everything in ``value``, which stands at ``path``; sections have the value None."""
    if not isinstance(value, Mapping):
        return [(path, value)]
    found: list[tuple[str, object]] = [(path, None)] if path else []
    for name, inner in value.items():
        found += leaves(f"{path}.{name}" if path else name, inner)
    return found
