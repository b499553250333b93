"""The ZeRO stage that fits the script."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.codemod.analysis.events import Happening
from dsmigrate.codemod.analysis.training import Training
from dsmigrate.codemod.decision import Decision
from dsmigrate.codemod.idioms.facts import Facts
from dsmigrate.codemod.model import Idea, Kind

IDEAS = (
    Idea(
        "MG703",
        "The ZeRO stage",
        "What is partitioned over the ranks: nothing (0), optimizer state (1), gradients too (2), parameters too (3).",
        "Stage 2 by default; stage 1 where the script accumulates or used no_sync, as stage 2 sends gradients at every backward; "
        "stage 0 where something needs whole gradients or states.",
        "deepspeed/runtime/zero/config.py",
        Kind.CONVERTED,
    ),
)


def preferred(training: Training, facts: Facts) -> int:
    """The stage for a script of which no decision asks for a lower one."""
    return 1 if facts.accumulates or any(True for _ in training.events(Happening.SYNC)) else 2


def stage(training: Training, facts: Facts) -> Iterator[Decision]:
    """Nothing of its own: what the stage is comes of all decisions (``decide``)."""
    del training, facts
    yield from ()
