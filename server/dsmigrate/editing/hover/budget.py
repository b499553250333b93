"""How much a hover says: what must be said, and of the rest the sentences that fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dsmigrate.editing.markdown import flow, plain

MOST = 400
"""Characters in sight, above the line of links."""
_BREAK = len("\n\n")
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"])|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class Note:
    """A paragraph that may be cut between its sentences."""

    label: str
    sentences: Sequence[str]
    otherwise: str = ""
    """What is said where the first sentence does not fit."""


def within(said: Iterable[str], notes: Iterable[Note]) -> Iterator[str]:
    """Yield the paragraphs ``said``, and of each note the sentences that fit; the page has the rest."""
    room = MOST
    for part in said:
        if part:
            room -= len(plain(part)) + _BREAK
            yield part
    for note in notes:
        fitting = label = f"**{note.label}**"
        for sentence in note.sentences:
            longer = f"{fitting} {sentence}"
            if len(plain(longer)) > room:
                break
            fitting = longer
        if fitting == label and note.otherwise:
            fitting = f"{label} {note.otherwise}"
        if fitting != label:
            room -= len(plain(fitting)) + _BREAK
            yield fitting


def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text of ours."""
    return tuple(found for found in _SENTENCES.split(flow(text)) if found)
