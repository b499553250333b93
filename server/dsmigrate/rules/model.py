"""What a rule says of itself, and what it finds."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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


Edits = tuple[TextEdit, ...]


class Fix:
    """A mend as edits of the text; never changes, and is worked out when somebody asks what it does.

    A safe one leaves training as DeepSpeed made it of the file, or lets it start as was plainly meant; an unsafe one is
    a guess at what was meant, or changes training. One that the text does not allow has no edits, and is false.
    """

    __slots__ = ("_edits", "safe", "title")

    def __init__(self, title: str, edits: Edits | Callable[[], Edits], safe: bool) -> None:  # noqa: FBT001 - a field
        """Take the edits, or what works them out: it is called once, when they are first asked for."""
        self.title = title
        self.safe = safe
        self._edits = edits

    @property
    def edits(self) -> Edits:
        """What is to be done."""
        if callable(self._edits):
            self._edits = self._edits()
        return self._edits

    def __bool__(self) -> bool:
        return bool(self.edits)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fix) or (self.title, self.safe) != (other.title, other.safe):
            return False
        return self.edits == other.edits

    def __hash__(self) -> int:
        return hash((self.title, self.safe))

    def __repr__(self) -> str:
        return f"Fix({self.title!r}, {self.edits!r}, safe={self.safe})"

    def __reduce__(self) -> tuple[type[Fix], tuple[str, Edits, bool]]:
        return Fix, (self.title, self.edits, self.safe)


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
    related: tuple[Related, ...] = ()
    tags: frozenset[Tag] = frozenset()
    proposed: tuple[Fix, ...] = field(default=(), hash=False)
    """Fixes as the rule means them, whether the text allows them or not; last, as comparing works them out."""

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """The fixes that the text allows."""
        return tuple(filter(None, self.proposed))


_TRUE = frozenset({"", "true", "1", "yes", "y", "t"})
"""Texts that stand for true among arguments, in lower case; "" is a flag without a value."""


def is_true(text: str) -> bool:
    """Return whether the text of an argument stands for true."""
    return text.lower() in _TRUE


@dataclass(frozen=True, slots=True)
class Default:
    """What a script takes for an argument that it is not given: its text, None if not known, and where it says so."""

    text: str | None
    place: str


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a training with the config is given besides it: by a launch line, a file of arguments, or a call.

    ``place`` is where, such as ``run.sh:3``. ``values`` are texts by the names of the arguments, without dashes in
    front and with underscores inside; "" is a flag, None a value that is not known. ``defaults`` are those of the
    script for what is not among them; ``whole`` says that what neither names has the default of Transformers, ``more``
    that there are arguments which nobody knows before the run. ``trainer`` is the one of TRL that gets them, "" for
    none, ``frozen`` whether it makes an engine of a frozen model with the same config. ``lost`` is the place of a line
    of arguments that the launch line does not reach, "" for none.
    """

    place: str
    values: Mapping[str, str | None] = field(hash=False)
    whole: bool = False
    trainer: str = ""
    frozen: bool = False
    lost: str = ""
    defaults: Mapping[str, Default] = field(default_factory=dict, hash=False)
    more: bool = False

    def given(self, name: str) -> Default | None:
        """Return what the script gets for an argument, given or by its default, and the place; None for nothing."""
        if name in self.values:
            return Default(self.values[name], self.place)
        return None if self.more else self.defaults.get(name)

    def is_on(self, name: str) -> bool:
        """Return whether an argument is given as a flag, or as true."""
        found = self.given(name)
        return found is not None and found.text is not None and is_true(found.text)


@dataclass(frozen=True, slots=True)
class Said:
    """What a script says of a key: where, in which words, and the value; ``is_default`` where nobody gives it.

    ``words`` are "" where the script leaves it out.
    """

    place: str
    words: str
    value: object
    is_default: bool = False


STAND_INS = {"optimizer": "DummyOptim", "scheduler": "DummyScheduler"}
"""What Accelerate's ``prepare`` takes for a section of the config, from ``accelerate.utils``."""


@dataclass(frozen=True, slots=True)
class Accelerated:
    """What a script with ``Accelerator(...)`` says beside its config.

    ``said`` holds it by the path of the key, and under ``mixed_precision``. ``real`` has the places where ``prepare``
    is given a real ``optimizer`` or ``scheduler``, ``stand_ins`` those of ``DummyOptim`` and ``DummyScheduler``,
    ``has_stand_in`` for which of the two the script has one at all. ``clips_by_value`` is the place of a
    ``clip_grad_value_``, ``reads_steps`` whether ``Accelerator`` itself counts the accumulation, ``holds_config``
    whether the config stands in the script.
    """

    said: Mapping[str, Said] = field(default_factory=dict, hash=False)
    real: Mapping[str, str] = field(default_factory=dict, hash=False)
    stand_ins: Mapping[str, str] = field(default_factory=dict, hash=False)
    has_stand_in: frozenset[str] = frozenset()
    clips_by_value: str = ""
    reads_steps: bool = False
    holds_config: bool = False


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The model that is trained, as far as its files or its size tell.

    ``name`` is where it is described. ``tensors`` are elements in the order of the model, those of a typical one where
    not ``exact``. ``block`` is the class around experts, "" for none. ``held`` returns the bytes of a GPU that states,
    buffers and gathered parameters take with a config, without activations; None where that is not known. ``frozen``
    are the tensors that do not train, with ``frozen_width`` bytes an element where they are quantised. ``trains`` is
    the file or the setting that says so, "" where all train, and ``base`` how the others are kept, as in ``--base``.
    """

    name: str
    tensors: tuple[int, ...]
    exact: bool = True
    heads: int | None = None
    block: str = ""
    held: Callable[[Context], int | None] | None = None
    frozen: tuple[int, ...] = ()
    frozen_width: float | None = None
    trains: str = ""
    base: str = "16bit"


@dataclass(frozen=True, slots=True)
class OwnSchema:
    """A JSON Schema of the project, for what its application puts into the config: its name, and its content.

    ``problem`` says why there is none.
    """

    name: str
    content: Mapping[str, Any] = field(default_factory=dict, hash=False)
    problem: str = ""

    def described(self, path: Path) -> Mapping[str, Any] | None:
        """Return what the schema says of the member at a path, by ``properties`` alone; None for nothing."""
        found: Any = self.content
        for name in path:
            inside = found.get("properties") if isinstance(found, Mapping) else None
            found = inside.get(name) if isinstance(inside, Mapping) else None
        return found if isinstance(found, Mapping) and path else None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known beside the file; None is unknown.

    ``world_size`` counts processes, ``gpu_memory`` bytes of one GPU, ``parameters`` elements of the model, ``hardware``
    is a lower-case name such as ``v100``, ``before`` the release that one comes from, ``arguments`` what each training
    with the file is given besides, ``model`` what is trained, ``schemas`` those of the project, ``transformers``,
    ``accelerate`` and ``trl`` the releases of these that hand the config on, ``configures_checkpointing`` whether a
    script of the project calls ``deepspeed.checkpointing.configure``, ``accelerated`` what scripts with Accelerate say,
    for each training, ``launched`` whether the file is fields in the YAML of ``accelerate launch``, ``lightning``
    whether Lightning hands the config on, ``through_accelerate`` whether the Trainer gets it from ``accelerate
    launch``, ``script`` the script of one's own that does, ``clips`` whether scripts with Accelerate clip gradients by
    themselves, ``trains`` whether it is for training, ``is_older`` whether the release is older than the first known
    one, which stands for it.
    """

    world_size: int | None = None
    gpu_memory: int | None = None
    parameters: int | None = None
    hardware: str | None = None
    before: str | None = None
    arguments: tuple[Arguments, ...] = ()
    model: ModelFacts | None = None
    schemas: tuple[OwnSchema, ...] = ()
    transformers: str | None = None
    accelerate: str | None = None
    trl: str | None = None
    configures_checkpointing: bool = False
    accelerated: tuple[Accelerated, ...] = ()
    launched: bool = False
    lightning: bool = False
    through_accelerate: bool = False
    script: str = ""
    clips: bool | None = None
    trains: bool = True
    is_older: bool = False


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
    ``source`` names code of DeepSpeed or threads. ``pains`` are the rows of user reports it answers. ``training`` says
    that it is about training alone, so that a config for inference has none of it.
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
    training: bool = False

    @property
    def title(self) -> str:
        """Code and name, as reports show them."""
        return f"{self.code} {self.name}"


Config = Mapping[str, object]
