"""The steps to take when a chosen config turns out too large, too slow, or not a number (schemas/decisions.toml)."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from dsmigrate.editing.urls import url_for_key
from dsmigrate.knowledge import Knowledge, Status
from dsmigrate.memory.variants import Variant
from dsmigrate.schemas_location import schema_toml


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do; ``links`` are the keys that it is about, and the addresses of their pages."""

    text: str
    links: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """What may come up, and the steps in their order."""

    title: str
    steps: tuple[Step, ...]


def topics(variant: Variant, half: str, known: Knowledge) -> tuple[Topic, ...]:
    """Return the topics that concern a variant in a precision, with the keys that the release has."""
    holds = conditions(variant, half)
    return tuple(
        Topic(title, tuple(Step(text, tuple(_links(keys, known))) for text, keys in steps))
        for title, when, steps in listed()
        if holds & set(when)
    )


def conditions(variant: Variant, half: str) -> set[str]:
    """Return what of ``when`` holds of a variant."""
    found = {"always", half}
    if variant.stage in {1, 2}:
        found.add("stage 1 or 2")
    if variant.stage == 3:
        found.add("stage 3")
    if {variant.optimizer, variant.weights} != {"none"}:
        found.add("offload")
    if variant.uses_nvme:
        found.add("nvme")
    return found


@functools.cache
def listed() -> tuple[tuple[str, tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]], ...]:
    """Return every topic as the file has it: title, conditions, and steps with their keys."""
    found = schema_toml("decisions.toml")["topic"]
    return tuple(
        (one["title"], tuple(one["when"]), tuple((step["text"], tuple(step["keys"])) for step in one["step"]))
        for one in found
    )


def _links(keys: tuple[str, ...], known: Knowledge) -> list[tuple[str, str]]:
    there = [key for name in keys if (key := known.key(name)) is not None and key.status is Status.PRESENT]
    return [(key.path, url_for_key(key, known)) for key in there]
