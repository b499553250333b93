"""What a new section starts with: the keys that nearly every one has, and those that it cannot do without."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from dsmigrate.editing.completion import data
from dsmigrate.editing.completion.body import Body, Spelling, section
from dsmigrate.editing.completion.data import Skeleton
from dsmigrate.editing.completion.members import Candidate, members, parameters
from dsmigrate.knowledge import Consumer, Knowledge, knowledge
from dsmigrate.rules.context import TYPED


@functools.lru_cache(maxsize=1024)
def skeletons(path: str, owner: str, known: Knowledge, consumer: Consumer) -> tuple[Skeleton, ...]:
    """Return the starts of a section, the best first and the emptiest last.

    ``owner`` is the type whose ``params`` are asked for, "" for other sections.
    """
    found: list[Mapping[str, object]] = []
    if path in TYPED:
        found += [starter.value for starter in data.sections(path, known) if starter.consumer in {None, consumer}]
        found.append({})
    elif owner:
        found += _usual(parameters(path.partition(".")[0], owner, known, consumer), path, known, consumer)
    else:
        found += _usual(members(path, known, consumer), path, known, consumer)
    unique = {str(value): value for value in found}
    return tuple(Skeleton(value, dict(data.leaves(path, value))) for value in unique.values())


def _usual(
    inside: tuple[Candidate, ...], path: str, known: Knowledge, consumer: Consumer
) -> Iterator[Mapping[str, object]]:
    switch = f"{path}.enabled"
    needed = [one for one in inside if one.required_when is not None and not one.required_when]
    with_switch = [one for one in inside if one.required_when is not None and True in one.required_when.get(switch, ())]
    usual = [one for one in inside if one.rank == 1 or one.name == "enabled" or one in needed or one in with_switch]
    switches = [one for one in usual if one.name == "enabled"]
    for chosen in (usual, [*switches, *(one for one in (*needed, *with_switch) if one not in switches)], needed):
        ordered = sorted(chosen, key=lambda one: (one.name != "enabled", one.name != "type"))
        yield {one.name: _value(one, known, consumer) for one in ordered}


def _value(candidate: Candidate, known: Knowledge, consumer: Consumer) -> object:
    if candidate.values:
        return candidate.values[0].value
    inner = skeletons(candidate.path, "", known, consumer)
    return inner[0].value if inner else {}


@functools.lru_cache(maxsize=512)
def of(candidate: Candidate) -> tuple[Skeleton, ...]:
    """Return the starts of the section that a candidate is."""
    return skeletons(candidate.path, "", candidate.known, candidate.consumer)


@functools.lru_cache(maxsize=512)
def body(start: Skeleton | data.Starter, spelling: Spelling) -> Body:
    """Return the text of a section's start: its numbers and free texts are tab stops."""

    def stops(name: str, value: object) -> bool:
        if isinstance(value, bool) or value is None:
            return False
        return not isinstance(value, str) or name not in _fixed()

    return section(start.value, spelling, stops)


@functools.cache
def _fixed() -> frozenset[str]:
    """Return the names of keys whose texts are not free."""
    known = knowledge()
    found = (known.key(path) for path in known.every_path())
    return frozenset({"type", "warmup_type", *(key.name for key in found if key is not None and key.enum)})
