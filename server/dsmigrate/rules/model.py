"""What a rule says of itself, and what it finds."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dsmigrate.document import Path, TextEdit
from dsmigrate.knowledge import Consumer

if TYPE_CHECKING:
    from dsmigrate.rules.context import Context


class Severity(enum.Enum):
    """How much a finding matters; the order is from most to least."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    HINT = "hint"


class Effect(enum.Enum):
    """What DeepSpeed, or the consumer in front of it, really does."""

    REJECTED = "rejected"
    """The config does not load, or the engine cannot be built."""
    IGNORED = "ignored"
    """The key does nothing."""
    OVERRIDDEN = "overridden"
    """Something else wins over the value."""
    DEFAULT = "default"
    """The default applies instead of what is written."""
    MISREAD = "misread"
    """The value is taken for something other than what it says."""
    CRASH = "crash"
    """Training stops later: at the first step, when saving, when loading."""
    SLOW = "slow"
    """It trains, slower than it could."""
    MEMORY = "memory"
    """It trains, with more memory than it needs."""
    RISKY = "risky"
    """It may train to other numbers than meant, or lose work."""
    CHANGED = "changed"
    """It means something else in another release."""


class Tag(enum.Enum):
    """How an editor may draw a finding."""

    UNNECESSARY = "unnecessary"
    DEPRECATED = "deprecated"


@dataclass(frozen=True, slots=True)
class Fix:
    """A mend as edits of the text.

    A safe one leaves training as DeepSpeed made it of the file, or lets it start as was plainly meant; an unsafe one is
    a guess at what was meant, or changes training.
    """

    title: str
    edits: tuple[TextEdit, ...]
    safe: bool


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that belongs to a finding: offsets in code points, and what it has to do with it."""

    start: int
    end: int
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: offsets are code points of the text, ``path`` leads to the key it is about."""

    code: str
    severity: Severity
    effect: Effect
    message: str
    path: Path
    start: int
    end: int
    fixes: tuple[Fix, ...] = ()
    related: tuple[Related, ...] = ()
    tags: frozenset[Tag] = frozenset()


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known beside the file; None is unknown.

    ``world_size`` counts processes, ``gpu_memory`` bytes of one GPU, ``parameters`` elements of the model, ``hardware``
    is a lower-case name such as ``v100``, ``before`` the release that one comes from.
    """

    world_size: int | None = None
    gpu_memory: int | None = None
    parameters: int | None = None
    hardware: str | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A config with the places that the rule points at between ``«`` and ``»``; without them it is a good example.

    ``fixed`` is the text after the first fix of each finding, None when there is no fix. ``accepted`` says whether the
    real DeepSpeed takes the (fixed) config; None leaves it unjudged, with the reason in a comment beside it.
    """

    config: str
    fixed: str | None = None
    consumer: Consumer = Consumer.DEEPSPEED
    version: str | None = None
    facts: Facts = field(default_factory=Facts)
    accepted: bool | None = True


Check = Callable[["Context"], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its texts, what it usually means, and the function that finds it.

    ``severity`` and ``effect`` are those of most of its findings; a finding may carry others. ``since`` and ``until``
    limit the releases it holds for (``until`` is the first one without it), ``consumers`` the readers of the config.
    ``source`` names code of DeepSpeed or threads. ``pains`` are the rows of user reports it answers.
    """

    code: str
    name: str
    summary: str
    why: str
    severity: Severity
    effect: Effect
    source: tuple[str, ...]
    examples: tuple[Example, ...]
    check: Check
    since: str | None = None
    until: str | None = None
    consumers: frozenset[Consumer] = frozenset(Consumer)
    keys: tuple[str, ...] = ()
    """Paths of keys whose page leads here."""
    pains: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        """Code and name, as reports show them."""
        return f"{self.code} {self.name}"


Config = Mapping[str, object]
