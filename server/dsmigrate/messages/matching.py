"""Finding known messages in a text, whatever stands around them.

White space counts as one space. A message is there when all pieces between its places are, one after the other and not
far from each other.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from dsmigrate.messages import names
from dsmigrate.messages.entries import Entry, Text, entries

_COLORS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_RANKS = re.compile(r"^(?:\d+: )?\[rank\d+\]:[ \t]?", re.MULTILINE)
_QUOTED = re.compile(r"^> ", re.MULTILINE)
_TYPOGRAPHY = str.maketrans("\u2018\u2019\u201c\u201d\u2502\u2503", "''\"\"  ")
"""Quotes of a text processor, and the frame that rich draws around a traceback."""
_WORD = re.compile(r"[A-Za-z_]{2,}")
_NEAR, _FAR, _SHORT = 60, 3000, 30
"""How many characters may be filled in at a place: of a message with few letters of its own, of others; what is few."""
_LINES, _LONG, _PART = 40, 300, 15
"""Of a text without a known message so many lines at its end are compared, so many words of each; a part of a message
that is quoted has so many characters."""
_SAME, _WORDS, _WHOLE = 0.6, 4, 0.85
"""Near is a line that shares this much of its words and of the message's, or at least so many words, this much of the
line, or twice so many in one go."""


@dataclass(frozen=True, slots=True)
class Match:
    """A message in a text; ``start`` and ``end`` are offsets in its tidy form."""

    entry: Entry
    text: Text
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Pattern:
    entry: Entry
    text: Text
    pieces: tuple[str, ...]
    anchor: int
    words: frozenset[str]
    gap: int

    def places(self, tidy: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of each place in a tidy text where all of the pieces are."""
        anchor = self.pieces[self.anchor]
        at = tidy.find(anchor)
        while at >= 0:
            place = self._around(tidy, at, at + len(anchor))
            if place is not None:
                yield place
            at = tidy.find(anchor, at + len(anchor) if place is None else max(place[1], at + len(anchor)))

    def _around(self, tidy: str, start: int, end: int) -> tuple[int, int] | None:
        for piece in self.pieces[self.anchor + 1 :]:
            at = tidy.find(piece, end, end + self.gap + len(piece))
            if at < 0:
                return None
            end = at + len(piece)
        for piece in reversed(self.pieces[: self.anchor]):
            at = tidy.rfind(piece, max(0, start - self.gap - len(piece)), start)
            if at < 0:
                return None
            start = at
        return start, end


@functools.cache
def _patterns() -> tuple[_Pattern, ...]:
    return tuple(_pattern(entry, text) for entry in entries() for text in entry.texts)


def _pattern(entry: Entry, text: Text) -> _Pattern:
    pieces = text.pieces
    anchor = max(range(len(pieces)), key=lambda number: len(pieces[number]))
    inner = pieces[anchor].split()[1:-1]  # a value or a quote may touch the first and the last word
    return _Pattern(entry, text, pieces, anchor, frozenset(inner), _NEAR if text.letters < _SHORT else _FAR)


def plain(text: str) -> str:
    """Return a text without colors and frames of a terminal and ranks in front of lines, with plain quotes."""
    if "\x1b" in text:
        text = _COLORS.sub("", text)
    if "[rank" in text:
        text = _RANKS.sub("", text)
    return text.translate(_TYPOGRAPHY) if not text.isascii() else text


def find(text: str) -> list[Match]:
    """Return the messages in what somebody pasted, each entry once, the most telling first; errors before warnings."""
    words = plain(_QUOTED.sub("", text.replace("\\n", "\n"))).split()
    best: dict[str, Match] = {}
    for match in among(words):
        best.setdefault(match.entry.name, match)
    return sorted(best.values(), key=lambda match: (match.text.severity.value != "error", -match.text.letters))


def among(words: Sequence[str]) -> list[Match]:
    """Return every message in the words of a text, in their order; where two overlap, the one that says more counts.

    What Python says of a name is told where no known message does, if the releases that have the name are known.
    """
    tidy, there = " ".join(words), set(words)
    found = [
        Match(pattern.entry, pattern.text, *place)
        for pattern in _patterns()
        if pattern.words <= there
        for place in pattern.places(tidy)
    ]
    found.sort(key=lambda match: (match.start, -match.text.letters))
    kept: list[Match] = []
    for match in found:
        while kept and kept[-1].end > match.start and kept[-1].text.letters < match.text.letters:
            kept.pop()
        if not kept or kept[-1].end <= match.start:
            kept.append(match)
    return sorted([*kept, *_missing(tidy, kept)], key=lambda match: match.start)


def _missing(tidy: str, known: Sequence[Match]) -> Iterator[Match]:
    """Yield the names that are missing, where none of the known messages is; these follow each other."""
    starts = [match.start for match in known]
    for entry, start, end in names.among(tidy):
        after = bisect_left(starts, end)
        if not after or known[after - 1].end <= start:
            yield Match(entry, entry.texts[0], start, end)


def nearest(text: str) -> list[Match]:
    """Return the entries whose wording is near to a line of a text in which none is found: a part, or other words."""
    part = " ".join(plain(text).split()).lower()
    if len(part) >= _PART:
        whole = [
            Match(pattern.entry, pattern.text, 0, 0) for pattern in _patterns() if part in pattern.text.text.lower()
        ]
        if whole:
            return list({match.entry.name: match for match in whole}.values())[:3]
    lines = [line for line in plain(text).splitlines() if line.strip()][-_LINES:]
    scored: dict[str, tuple[float, Match]] = {}
    for line in lines:
        said = _WORD.findall(line)[:_LONG]
        for pattern in _patterns():
            score = _likeness(said, _WORD.findall(" ".join(pattern.pieces)))
            if score > scored.get(pattern.entry.name, (0.0,))[0]:
                scored[pattern.entry.name] = (score, Match(pattern.entry, pattern.text, 0, 0))
    best = max((score for score, _ in scored.values()), default=0.0)
    ranked = sorted(scored.values(), key=lambda one: -one[0])
    return [match for score, match in ranked if score >= 0.9 * best][:3]


def _likeness(said: Sequence[str], known: Collection[str]) -> float:
    """Return how alike the words of a line and of a message are: 0 unless they share most of them, in their order."""
    if len(set(said) & set(known)) < _WORDS:
        return 0.0
    blocks = SequenceMatcher(None, list(said), list(known), autojunk=False).get_matching_blocks()
    common = sum(block.size for block in blocks)
    if common < _WORDS:
        return 0.0
    of_line, of_message = common / len(said), common / len(known)
    longest = max(block.size for block in blocks)
    is_part = longest >= 2 * _WORDS or (of_line >= _WHOLE and longest >= _WORDS)
    if is_part or min(of_line, of_message) >= _SAME:
        return of_line + of_message
    return 0.0
