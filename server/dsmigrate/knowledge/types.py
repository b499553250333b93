"""Optimizer and scheduler types: what may stand in ``optimizer.type`` and what each takes in ``params``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dsmigrate.knowledge.spans import MISSING, Event


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an optimizer or scheduler type; ``default`` is MISSING when there is none."""

    name: str
    type: tuple[str, ...]
    default: object = MISSING
    items: tuple[str, ...] = ()
    required: bool = False
    unit: str = ""
    summary: str = ""
    doc: str = ""
    when: str = ""
    trap: str = ""
    only_with: str = ""
    """Which of the classes behind the type takes it, in English, which rules read; "" for all."""
    only_said: str = ""
    """The same in the spoken language."""
    english: str = ""
    """The summary in English."""
    suggestions: tuple[Mapping[str, object], ...] = ()
    since: str = "0.9.0"
    changes: tuple[Event, ...] = ()
    """How its default moved from release to release."""
    enum: tuple[object, ...] = ()
    """The closed list of its values; empty when there is none."""
    minimum: float | None = None
    exclusive_minimum: float | None = None
    maximum: float | None = None
    exclusive_maximum: float | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    """What each value means, by its text."""
    parts: tuple[str, ...] = ()
    """What each element of a list is, where each is something of its own."""
    decisive: str = ""
    """Why its default is worth seeing where it is left out; "" for most."""
    torch_default: object = MISSING
    """The default of torch's AdamW, where ``torch_adam`` builds that and it has another one."""


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """A type by the name written in a config."""

    name: str
    kind: str
    """"optimizer" or "scheduler"."""
    summary: str
    doc: str
    parameters: Mapping[str, Parameter]
    builds: tuple[str, ...] = ()
    """The classes it stands for; more than one where offload or a parameter decides."""
    when: str = ""
    trap: str = ""
    myth: str = ""
    case_sensitive: bool = False
    untested: bool = False
    """Whether ZeRO needs ``zero_allow_untested_optimizer`` for it."""
    torch: bool = False
    """Whether it is a class of torch and not DeepSpeed's own."""
    since: str = "0.9.0"
    until: str | None = None
    """The first release without it."""
    takes_anything: bool = False
    """Whether unknown parameters are swallowed and not refused."""
    states: int | None = None
    """The elements of state that an optimizer keeps for each parameter; None where that depends on the model."""
    switched_states: Mapping[str, int] = field(default_factory=dict)
    """The elements on top for a parameter that is on, or is no zero."""
    source: tuple[str, ...] = ()
    related: tuple[str, ...] = field(default_factory=tuple)

    @property
    def path(self) -> str:
        """What ``dsmigrate explain`` and links call it."""
        return f"{self.kind}.{self.name}"
