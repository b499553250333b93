"""What a person asks of a verification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dsmigrate.settings.fields import Value

LAUNCHERS = ("auto", "torchrun", "deepspeed", "srun", "python")
DEVICES = ("auto", "cuda", "pretend", "cpu")


@dataclass(frozen=True, slots=True)
class Request:
    """One verification.

    ``stages`` are the ZeRO stages to try, empty: what the config says. ``timeout`` is in seconds, for each run.
    ``tolerance`` multiplies every tolerance. ``resume`` holds the arguments of a second start, None where resuming is
    not asked for. ``here`` runs in the present folder instead of a copy. ``conversion`` are settings of the conversion
    that is made where ``converted`` is None.
    """

    original: Path
    converted: Path | None = None
    arguments: tuple[str, ...] = ()
    converted_arguments: tuple[str, ...] | None = None
    stages: tuple[int, ...] = ()
    processes: int = 2
    steps: int = 20
    seed: int = 0
    timeout: float = 600.0
    tolerance: float = 1.0
    launcher: str = "auto"
    device: str = "auto"
    python: str | None = None
    resume: tuple[str, ...] | None = None
    here: bool = False
    keep: bool = False
    conversion: Mapping[str, Value] = field(default_factory=dict)
