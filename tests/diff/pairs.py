"""Real pairs of configs: ``DSMIGRATE_PAIRS`` names a folder with files ``0001_a.json`` and ``0001_b.json``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dsmigrate.checking.evidence import consumer_for
from dsmigrate.diff import Result, compare_views
from dsmigrate.document import Document, parse_bytes
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Facts, Settings

NO_PAIRS = "DSMIGRATE_PAIRS names no folder of pairs"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two versions of a config, and who reads them."""

    name: str
    old: Document
    new: Document
    consumer: Consumer

    def view(self, document: Document, world_size: int | None = None) -> View:
        """Return a side as the newest release sees it."""
        return View(document, Settings(consumer=self.consumer, facts=Facts(world_size=world_size)))

    def compared(self, *, mirrored: bool = False, world_size: int | None = None) -> Result:
        """Return the comparison; ``mirrored`` from new to old."""
        sides = (self.new, self.old) if mirrored else (self.old, self.new)
        old, new = (self.view(document, world_size) for document in sides)
        return compare_views(old, new)


@cache
def pairs() -> tuple[Pair, ...]:
    """Return the pairs in the order of their names; none where the folder is not named."""
    folder = os.environ.get("DSMIGRATE_PAIRS")
    if not folder:
        return ()
    return tuple(_pair(old) for old in sorted(Path(folder).glob("*_a.json")))


def _pair(old: Path) -> Pair:
    sides = [parse_bytes(path.read_bytes()) for path in (old, old.with_name(old.name.replace("_a.", "_b.")))]
    guesses = [Consumer(consumer_for(side, None).value) for side in sides]
    consumer = next((guess for guess in guesses if guess is not Consumer.DEEPSPEED), Consumer.DEEPSPEED)
    return Pair(old.name.removesuffix("_a.json"), sides[0], sides[1], consumer)
