"""The keys that an object can have, as far as the release and the reader tell: worked out once for each section."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dsmigrate.editing.completion import data
from dsmigrate.editing.completion.choices import Choice, choices, parameter_choices, placeholder
from dsmigrate.editing.completion.item import Data, Kind
from dsmigrate.editing.completion.situation import other_names
from dsmigrate.knowledge import MISSING, Consumer, Key, Knowledge, Parameter, Status
from dsmigrate.knowledge.versions import order
from dsmigrate.knowledge.wording import json_text, type_text
from dsmigrate.languages import say
from dsmigrate.rules.context import TYPED

SPECIAL = frozenset(
    {
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "zero_optimization.offload_optimizer.nvme_path",
        "zero_optimization.offload_param.nvme_path",
    }
)
"""Keys that matter more in files that lack something."""
Conditions = Mapping[str, Sequence[object]]


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A key or parameter that could be written.

    ``names`` are all its spellings, ``values`` what to put behind it, the best first; empty for a section.
    """

    name: str
    path: str
    kind: Kind
    facts: Key | Parameter
    names: tuple[str, ...]
    values: Sequence[Choice]
    rank: int
    effective_when: Conditions
    effective_when_any: Sequence[Conditions]
    required_when: Conditions | None
    detail: str
    description: str
    data: Data
    asks_again: bool
    """Whether there are several values, so that it is worth to complete once more behind the key."""

    known: Knowledge
    consumer: Consumer
    is_plain: bool
    """Whether it matters as much in every file."""


@functools.lru_cache(maxsize=512)
def members(path: str, known: Knowledge, consumer: Consumer) -> tuple[Candidate, ...]:
    """Return the keys of the section at a canonical path, "" for the top; gone, deprecated and dead ones left out."""
    found = [_candidate(key, known, consumer) for key in known.children(path) if _is_offered(key)]
    return tuple(sorted(found, key=lambda one: (one.rank, one.name)))


def _is_offered(key: Key) -> bool:
    free = key.name in {"*", ""} or key.name.startswith("*")
    return key.status is Status.PRESENT and not key.dead and key.alias_of is None and not free and key.type != ("null",)


def is_object(key: Key) -> bool:
    """Return whether the value of a key is an object whose keys are known, those of a type included."""
    return key.is_section or key.path in {f"{kind}.params" for kind in TYPED}


def _candidate(key: Key, known: Knowledge, consumer: Consumer) -> Candidate:
    is_section = is_object(key)
    offered = () if is_section else choices(key.path, known, consumer)
    return Candidate(
        name=key.name,
        path=key.path,
        kind=Kind.SECTION if is_section else Kind.KEY,
        facts=key,
        names=(key.name, *other_names().get(key.path, ())),
        values=() if is_section else tuple(placeholder(key, offered)),
        rank=data.rank(key.path),
        effective_when=key.effective_when,
        effective_when_any=key.effective_when_any,
        required_when=key.required_when,
        detail=_detail(type_text(key), key.default, section=is_section),
        description=key.unit,
        data=("key", key.path),
        asks_again=len(offered) > 1,
        known=known,
        consumer=consumer,
        is_plain=key.required_when is None
        and not (key.effective_when or key.effective_when_any or key.path in SPECIAL),
    )


@functools.lru_cache(maxsize=256)
def parameters(kind: str, owner: str, known: Knowledge, consumer: Consumer) -> tuple[Candidate, ...]:
    """Return the parameters of an optimizer or scheduler type that the release takes."""
    facts = known.optimizer(owner) if kind == "optimizer" else known.scheduler(owner)
    if facts is None:
        return ()
    now = order(known.version)
    found = [
        _parameter(kind, facts.name, parameter, known, consumer)
        for parameter in facts.parameters.values()
        if order(parameter.since) <= now
    ]
    return tuple(sorted(found, key=lambda one: (one.rank, one.name)))


def _parameter(kind: str, owner: str, parameter: Parameter, known: Knowledge, consumer: Consumer) -> Candidate:
    path = f"{kind}.params.{parameter.name}"
    offered = parameter_choices(kind, owner, parameter.name, known, consumer)
    return Candidate(
        name=parameter.name,
        path=path,
        kind=Kind.KEY,
        facts=parameter,
        names=(parameter.name,),
        values=tuple(placeholder(parameter, offered)),
        rank=data.rank(path),
        effective_when={},
        effective_when_any=(),
        required_when={} if parameter.required else None,
        detail=_detail(say(" or ").join(parameter.type), parameter.default, section=False),
        description=parameter.unit,
        data=("parameter", kind, owner, parameter.name),
        asks_again=len(offered) > 1,
        known=known,
        consumer=consumer,
        is_plain=not parameter.required,
    )


def _detail(kinds: str, default: object, *, section: bool) -> str:
    if section:
        return "section" if "object" in kinds else kinds
    if default is MISSING or default is None:
        return kinds
    text = json_text(default)
    return say("{kinds}, default {what}", kinds=kinds, what=text if len(text) <= 30 else f"{text[:29]}…")
