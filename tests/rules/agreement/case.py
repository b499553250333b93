"""A config to judge, and what was planted in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dsmigrate.document import Object, parse
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
    """A config as data, or as a text, which rules and DeepSpeed read from a file; or as both: DeepSpeed gets the data.

    ``world`` is the number of processes, None if it is unknown.
    """

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
    def data(self) -> Config | None:
        """The config as data, also of a text; None when it is none."""
        if self.config is not None or self.text is None:
            return self.config
        root = parse(self.text).root
        value = root.value() if isinstance(root, Object) else None
        return value if isinstance(value, dict) else None

    @property
    def kinds(self) -> str:
        """The kinds of its faults."""
        return " + ".join(sorted({fault.kind for fault in self.planted})) or "valid"
