"""Changes between two configs, and what is said about them."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from dsmigrate.document import Path
from dsmigrate.rules import Finding


class Effect(enum.Enum):
    """What a change touches."""

    NUMERICS = "numerics"
    """The numbers that training computes: another loss curve."""
    MEMORY = "memory"
    """Memory of the GPU, of the host, or space on NVMe."""
    COMMUNICATION = "communication"
    """What is sent between processes, how much and in which pieces."""
    SPEED = "speed"
    """Time per step, with the same numbers."""
    CHECKPOINT = "checkpoint"
    """What is written to and can be read from checkpoints."""
    VALIDITY = "validity"
    """Whether the config loads and trains at all."""
    OBSERVABILITY = "observability"
    """Logs, monitors, profiles."""
    NONE = "none"
    """Nothing."""


class Severity(enum.Enum):
    """How much it matters for whoever reviews it, from most to least.

    BREAKING: it no longer runs, checkpoints no longer load, or training becomes another one. WARNING: training or its
    requirements change in a way that needs review. INFO: it does something that does not. NONE: it does nothing.
    """

    BREAKING = "breaking"
    WARNING = "warning"
    INFO = "info"
    NONE = "none"


class Kind(enum.Enum):
    """What happened to a key."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    RENAMED = "renamed"
    """It is written under another name, or in another section, for the same thing."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a side has a key: the path of nodes as it is written, and the range of the member in code points."""

    path: Path
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Change:
    """One key that is not written alike on both sides, or that means something else.

    ``path`` is dotted and canonical. ``old`` and ``new`` are the values as written, MISSING where a side leaves the key
    out. ``old_meant`` and ``new_meant`` are what DeepSpeed takes: the default for an absent key, UNKNOWN for what a
    consumer fills in. ``differs`` is whether DeepSpeed's config differs; UNKNOWN equals UNKNOWN alone.
    """

    path: str
    kind: Kind
    old: object
    new: object
    old_meant: object
    new_meant: object
    differs: bool
    old_spot: Spot | None
    new_spot: Spot | None


@dataclass(frozen=True, slots=True)
class Explained:
    """What one explanation says about some changes; ``paths`` are theirs, the first one is what it is about.

    ``advice`` is what to do about it. ``brief`` is the message in a few words, for the verdict: "effective batch
    64 → 128"; "" for what the verdict need not name. Of what has a ``tally``, such as "left to Accelerate: {values}" or
    "findings gone: {count}", the verdict gives the number and nothing else. ``found`` are the findings of a side that
    it tells, which nothing else has to tell again.
    """

    code: str
    paths: tuple[str, ...]
    effects: tuple[Effect, ...]
    severity: Severity
    message: str
    advice: str = ""
    brief: str = ""
    tally: str = ""
    found: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """A comparison: every change by its path, what is said of them, most important first, and a verdict in a line."""

    changes: dict[str, Change]
    explained: tuple[Explained, ...]
    verdict: str

    @property
    def is_same(self) -> bool:
        """Whether DeepSpeed makes the same config of both sides, and does the same with it."""
        return not any(change.differs for change in self.changes.values()) and self.worst is Severity.NONE

    @property
    def worst(self) -> Severity:
        """The severity of what matters most."""
        order = list(Severity)
        return min((item.severity for item in self.explained), key=order.index, default=Severity.NONE)
