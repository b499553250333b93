"""What an explanation looks at: both sides and their changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from dsmigrate.diff.model import Change, Effect, Explained, Severity
from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.inert import unmet
from dsmigrate.knowledge import MISSING
from dsmigrate.languages import say
from dsmigrate.rules import Finding
from dsmigrate.rules.context import UNKNOWN


class Pair:
    """Two sides and every change between them, by canonical path."""

    def __init__(self, old: Side, new: Side, changes: Mapping[str, Change]) -> None:
        self.old = old
        self.new = new
        self.changes = changes
        self.code = ""
        """The code of the explanation that is asked; set by ``run``."""
        self.claimed: set[str] = set()
        """The paths of the changes that an explanation before this one has told; kept by ``run``."""
        self.acts = False
        """Whether an explanation before this one has told of something that is not nothing; kept by ``run``."""
        self.found: set[Finding] = set()
        """The findings of a side that an explanation before this one has told; kept by ``run``."""
        self.mentioned: set[str] = set()
        """Those, and the paths of mere remarks about validity."""
        self._untold: tuple[int, bool] | None = None
        self._lives: dict[str, tuple[bool, bool]] = {}

    @cached_property
    def differs(self) -> bool:
        """Whether DeepSpeed makes another config of the new side."""
        return any(change.differs for change in self.changes.values())

    @cached_property
    def came(self) -> frozenset[str]:
        """The keys that only the new side has, and that its release reads."""
        return frozenset(path for path, one in self.changes.items() if one.old is MISSING and self.new.reads(path))

    def change(self, path: str) -> Change | None:
        """Return the change of a key where it means something else now and that matters on a side; else None."""
        found = self.changes.get(path)
        return found if found is not None and found.differs and any(self.lives(path)) else None

    def lives(self, path: str) -> tuple[bool, bool]:
        """Return whether a key does anything on each side, given the rest of the config; what is unknown may.

        A key that its release does not read, a dead one, and one whose conditions do not hold does nothing.
        """
        if path not in self._lives:
            self._lives[path] = _lives(self.old, path), _lives(self.new, path)
        return self._lives[path]

    @property
    def has_untold(self) -> bool:
        """Whether there is a change that matters on a side and that no explanation before this one has told."""
        told = len(self.claimed)
        if self._untold is None or self._untold[0] != told:
            self._untold = told, any(live.path not in self.claimed for live in self.live())
        return self._untold[1]

    def live(self, section: str = "") -> Iterator[Change]:
        """Yield the changes, inside a section or all, that mean something else now and matter on a side."""
        for path in self.changes:
            change = self.change(path) if not section or path.startswith(f"{section}.") else None
            if change is not None:
                yield change

    def touched(self, *paths: str) -> tuple[str, ...]:
        """Return those of the keys that are written differently, whether or not they mean something else."""
        return tuple(path for path in paths if path in self.changes)

    def below(self, section: str) -> Iterator[Change]:
        """Yield the changes inside a section."""
        for path, change in self.changes.items():
            if path.startswith(f"{section}."):
                yield change

    def values(self, path: str) -> tuple[object, object]:
        """Return what DeepSpeed takes for a key on both sides, defaults included."""
        return self.old.value(path), self.new.value(path)

    def numbers(self, path: str) -> tuple[float | None, float | None]:
        """Return both values as numbers; None for one that is none, or unknown."""
        return self.old.number(path), self.new.number(path)

    def says(
        self,
        *paths: str,
        effects: tuple[Effect, ...],
        severity: Severity,
        message: str,
        advice: str = "",
        brief: str = "",
        tally: str = "",
        found: tuple[Finding, ...] = (),
    ) -> Explained:
        """Return what the current explanation says about the changes at ``paths``, the first of which it is about."""
        return Explained(self.code, paths, effects, severity, say(message), say(advice), say(brief), say(tally), found)


def _lives(side: Side, path: str) -> bool:
    key = side.known.key(path)
    if key is None:
        return side.reads(path) or side.refuses(path)
    if not side.reads(path):
        return side.refuses(path)
    if key.dead:
        return False
    return unmet(side.context, key, side.place(path)) is None


def shown(value: object) -> str:
    """Return a value as messages show it: JSON in backticks, "absent", "decided when training starts" for UNKNOWN."""
    from dsmigrate.knowledge.wording import json_text  # noqa: PLC0415 - a cycle of neither, kept off the import path

    if value is MISSING:
        return say("absent")
    if value is UNKNOWN:
        return say("decided when training starts")
    text = json_text(value)
    return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}…`"
