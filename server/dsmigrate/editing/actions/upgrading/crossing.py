"""A config between two releases: what each idea of the upgrade looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dsmigrate.document import Document
from dsmigrate.editing.actions.draft import Step
from dsmigrate.knowledge import Key, Knowledge, Status
from dsmigrate.rules import Settings
from dsmigrate.rules.context import Context, Entry

HERE = frozenset({Status.PRESENT, Status.DEPRECATED})


@dataclass(frozen=True, slots=True)
class Left:
    """What only the person can do, as a sentence."""

    why: str


@dataclass(frozen=True, slots=True)
class Crossing:
    """A config as the new release sees it, and what the ``earlier`` one knew; ``settings`` are for the new one."""

    context: Context
    earlier: Knowledge
    settings: Settings

    @property
    def document(self) -> Document:
        """The config."""
        return self.context.document

    def was_read(self, key: Key) -> bool:
        """Return whether the earlier release read a key."""
        before = self.earlier.key(key.path)
        return before is not None and before.status in HERE

    def entries(self) -> Iterator[tuple[Entry, Key]]:
        """Yield the members that have a value and a key, outermost first."""
        for entry in self.context.entries:
            if entry.key is not None and entry.node is not None:
                yield entry, entry.key


Idea = Callable[[Crossing], Iterator[Step | Left]]
