"""A config to judge, and what was planted in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dsmigrate.knowledge import Consumer

Config = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Planted:
    """A fault: its kind, the dotted paths of which one must be named, and the rules that should find it."""

    kind: str
    paths: tuple[str, ...]
    family: str


@dataclass(frozen=True, slots=True)
class Case:
    """A config as data, or as a text that is no plain JSON; ``world`` is the number of processes, None if unknown."""

    name: str
    config: Config | None
    world: int | None = 1
    planted: tuple[Planted, ...] = ()
    text: str | None = None
    consumer: Consumer = Consumer.DEEPSPEED
    version: str | None = None

    @property
    def written(self) -> str:
        """The text of the file."""
        return self.text if self.text is not None else json.dumps(self.config, indent=2)

    @property
    def kinds(self) -> str:
        """The kinds of its faults."""
        return " + ".join(sorted({fault.kind for fault in self.planted})) or "valid"
