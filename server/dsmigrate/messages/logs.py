"""The known messages in a log: a file of any size and encoding, with colors and progress bars in it."""

from __future__ import annotations

import codecs
import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dsmigrate.files.reading import check_size, opened
from dsmigrate.files.text import SourceError
from dsmigrate.languages import say
from dsmigrate.messages.entries import Entry, Text
from dsmigrate.messages.matching import among, plain

LARGEST = 512 * 1024 * 1024
"""The largest log that is read, in bytes."""
_CHUNK = 4 * 1024 * 1024
_OVERLAP = 8 * 1024
"""So many characters at the end of a chunk are read again with the next one: a message may go on there."""
_EXCERPT = 300
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True, slots=True)
class Seen:
    """A message of a log: what it says there, the 1-based line where it first begins, and how often it comes."""

    entry: Entry
    text: Text
    said: str
    line: int
    count: int


@dataclass(frozen=True, slots=True)
class Log:
    """A log and what was found in it, in the order of the first places; ``error`` says why it cannot be read."""

    name: str
    seen: tuple[Seen, ...] = ()
    error: str = ""


def read_log(path: Path) -> Log:
    """Return the known messages in the log at ``path``."""
    try:
        with opened(path) as file:
            check_size(os.fstat(file.fileno()).st_size, LARGEST)
            seen = scan(_chunks(iter(lambda: file.read(_CHUNK), b"")))
    except SourceError as error:
        return Log(str(path), error=error.message)
    except OSError as error:
        return Log(str(path), error=say("cannot be read: {error}", error=error.strerror or error))
    return Log(str(path), tuple(seen))


def scan(chunks: Iterable[str]) -> list[Seen]:
    """Return each known message of a text that comes in chunks, once, in the order of their first places."""
    seen: dict[str, Seen] = {}
    held, line = "", 1
    for chunk in chunks:
        text = held + chunk
        cut = _cut(text)
        _look(text, cut, line, seen)
        line += text.count("\n", 0, cut)
        held = text[cut:]
    _look(held, len(held), line, seen)
    return list(seen.values())


def _chunks(parts: Iterator[bytes]) -> Iterator[str]:
    first = next(parts, b"")
    encoding = next((name for mark, name in _MARKS if first.startswith(mark)), "utf-8")
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for part in itertools.chain([first], parts):
        yield plain(decoder.decode(part))


def _cut(text: str) -> int:
    """Return how much of a text is done with: up to a line or a word well before its end."""
    most = max(0, len(text) - _OVERLAP)
    if len(text) > 4 * _CHUNK:
        return most  # one word of that length: nothing that anybody wrote
    return text.rfind("\n", 0, most) + 1 or max(text.rfind("\r", 0, most), text.rfind(" ", 0, most)) + 1


def _look(text: str, cut: int, line: int, seen: dict[str, Seen]) -> None:
    """Add to ``seen`` what begins before ``cut``; ``line`` is the number of the text's first line."""
    words = text.split()
    matches = among(words)
    if not matches:
        return
    tidy = " ".join(words)
    done = len(tidy) if cut == len(text) else len(" ".join(text[:cut].split()))
    for match in matches:
        if match.start >= done:
            return
        before = seen.get(match.entry.name)
        if before is not None:
            seen[match.entry.name] = replace(before, count=before.count + 1)
            continue
        first, last = (tidy.count(" ", 0, place) for place in (match.start, match.end))
        at, _ = _line_of(text, first)
        _, after = _line_of(text, last)
        stop = (tidy + " ").index(" ", match.end)
        said = " ".join([tidy[match.start : stop], *words[last + 1 : after]])
        seen[match.entry.name] = Seen(match.entry, match.text, said[:_EXCERPT], line + at, 1)


def _line_of(text: str, word: int) -> tuple[int, int]:
    """Return how many lines are before a word, counted from 0, and how many words there are up to its line's end."""
    words = 0
    for number, line in enumerate(text.split("\n")):
        words += len(line.split())
        if words > word:
            return number, words
    return 0, words
