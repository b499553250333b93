"""Sections that are ready to use, as keys with their values."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

from dsmigrate.editing.completion import data, refusals, relevance, skeletons
from dsmigrate.editing.completion.item import Item, Kind
from dsmigrate.editing.completion.members import Candidate
from dsmigrate.editing.completion.scene import Scene


def items(candidates: Iterable[Candidate], scene: Scene) -> Iterator[Item]:
    """Yield the starters of those of ``candidates`` that are sections."""
    for candidate in candidates:
        if candidate.kind is not Kind.SECTION:
            continue
        every = _starters(candidate)
        found = [one for one in every if not refusals.is_start_refused(scene.situation, one)] if every else []
        if not found:
            continue
        matters = relevance.of(candidate, scene.spot.path, scene.situation)
        for number, starter in enumerate(found):
            yield scene.item(
                f"{candidate.name}: {starter.label}",
                Kind.SNIPPET,
                scene.member(candidate.name, skeletons.body(starter, scene.page.spelling)),
                sort=f"{matters.rank}{candidate.name}~{number:02}",
                detail=starter.summary,
                description=matters.reason,
                data=("section", candidate.path, starter.label),
            )


def offered(path: str, scene: Scene) -> list[data.Starter]:
    """Return the starters of a section that are for the reader of the file and go with the rest of it."""
    return [
        starter
        for starter in data.sections(path, scene.known)
        if starter.consumer in {None, scene.consumer} and not refusals.is_start_refused(scene.situation, starter)
    ]


@functools.lru_cache(maxsize=512)
def _starters(candidate: Candidate) -> tuple[data.Starter, ...]:
    found = data.sections(candidate.path, candidate.known)
    return tuple(starter for starter in found if starter.consumer in {None, candidate.consumer})
