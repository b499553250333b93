"""Peaks that others measured; ``python -m tests.benchmarks.published_peaks`` prints the table."""

from __future__ import annotations

from dsmigrate.memory.activations import Loss
from tests.benchmarks.activations import loss_bytes
from tests.benchmarks.published_peaks import CLOSE, EXPLAINED, PUBLISHED


def test_four_of_five_published_peaks_are_met_and_the_others_explained() -> None:
    assert len(PUBLISHED) >= 20
    assert sum(abs(one.deviation) <= CLOSE for one in PUBLISHED) >= 0.8 * len(PUBLISHED)
    assert [one.name for one in PUBLISHED if abs(one.deviation) > EXPLAINED and not one.reason] == []
    assert all(one.source.startswith("https://") for one in PUBLISHED)


def test_what_processes_allocated_is_met_within_a_tenth() -> None:
    """LoRA and QLoRA by Transformers and PEFT, in bytes of the allocator."""
    measured = [one for one in PUBLISHED if one.name.startswith("fms-acceleration")]
    assert len(measured) == 11
    assert [one.name for one in measured if abs(one.deviation) > 0.08] == []


def test_a_loss_holds_logits_as_often_as_its_kind_does() -> None:
    """Bytes for each token and word, as tests/e2e/loss_judge.py measures them."""
    sizes = {kind: (loss_bytes(kind, 2), loss_bytes(kind, 4)) for kind in Loss if kind is not Loss.FUSED}
    assert sizes == {Loss.UPCAST: (14, 16), Loss.SHIFTED: (16, 16), Loss.PLAIN: (8, 16), Loss.CHUNKED: (6.5, 8)}
    assert loss_bytes(Loss.FUSED, 2) < 0.1
