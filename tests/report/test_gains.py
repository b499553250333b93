"""What a conversion changes in memory and traffic."""

from __future__ import annotations

from typing import Any

import pytest

from dsmigrate.codemod.model import NEWEST_DEEPSPEED, Accumulation
from dsmigrate.report.gains import gains

TWO: dict[str, Any] = {"zero_optimization": {"stage": 2}}
ONCE = Accumulation("AdamW")
WINDOWS = Accumulation("AdamW", accumulates=True)
KEPT_BACK = Accumulation("AdamW", accumulates=True, sends_each=False)


@pytest.mark.parametrize(
    ("config", "training", "sent"),
    [
        (TWO, ONCE, "3Ψ elements, DDP 2Ψ"),  # without a batch size in the file
        ({**TWO, "train_micro_batch_size_per_gpu": 8}, ONCE, "3Ψ elements, DDP 2Ψ"),
        (TWO, WINDOWS, "(2g + 1)Ψ elements, DDP 2gΨ; g micro-batches"),
        (TWO, Accumulation("AdamW", accumulates=True, micro_batches=4), "9Ψ elements, DDP 8Ψ"),
        (TWO, KEPT_BACK, "(2g + 1)Ψ elements, DDP 2Ψ; g micro-batches"),
        ({"zero_optimization": {"stage": 1}}, KEPT_BACK, "3Ψ elements, DDP 2Ψ"),
        ({"zero_optimization": {"stage": 0}}, ONCE, "2Ψ elements, as under DDP"),
    ],
)  # fmt: skip
def test_g_stands_only_where_windows_are_open(config: dict[str, Any], training: Accumulation, sent: str) -> None:
    assert f"sent per GPU and step: {sent}" in list(gains(config, training, NEWEST_DEEPSPEED))


@pytest.mark.parametrize(
    ("optimizer", "says"),
    [
        ("AdamW", "4Ψ + 16Ψ/N bytes, DDP 16Ψ"),
        *((name, None) for name in ("Adafactor", "LBFGS", "AdamW8bit", "Prodigy", "LARS", "TheirOwn", "")),
    ],
)
def test_memory_is_told_of_an_optimizer_whose_states_are_known(optimizer: str, says: str | None) -> None:
    found = [one for one in gains(TWO, Accumulation(optimizer), NEWEST_DEEPSPEED) if one.startswith("memory")]
    assert [says] * len(found) == [one.partition(": ")[2].partition(";")[0] for one in found]
    assert bool(found) is (says is not None)
