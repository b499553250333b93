"""Activations beside what the papers publish; ``python -m tests.benchmarks.activations`` prints the deviations."""

from __future__ import annotations

import pytest

from dsmigrate.memory import Model, Place, What
from dsmigrate.memory.activations import Attention, Checkpointing, Workload, activations, attention_bytes, block_bytes
from dsmigrate.memory.shape import Shape
from tests.benchmarks.activations import PUBLISHED

EAGER = Attention.EAGER


@pytest.mark.parametrize(("heads", "hidden", "scores"), [(96, 12288, 80), (128, 20480, 64)], ids=["GPT-3", "MT-NLG"])
def test_the_terms_of_reducing_activation_recomputation(heads: int, hidden: int, scores: float) -> None:
    """Section 4.1 and 5: ``sbh(34 + 5as/h)``, where ``5as/h`` is 80 for GPT-3 and 64 for MT-NLG 530B."""
    shape = Shape.of_gpt(1, hidden, heads, 51200)
    whole = block_bytes(shape, Workload(1, 2048, attention=EAGER)) / hidden
    assert whole == pytest.approx(34 + scores)
    kernel = block_bytes(shape, Workload(1, 2048)) / hidden
    assert kernel == pytest.approx(34, abs=0.05)  # and one number per row of scores


def test_attention_and_mlp_have_the_shares_of_the_paper() -> None:
    """Attention ``11sbh + 5as²b``, MLP ``19sbh``, two norms ``4sbh``."""
    shape, work = Shape.of_gpt(1, 4096, 32, 32000), Workload(1, 1024, attention=EAGER)
    assert attention_bytes(shape, work) == 11 * 4096 + 5 * 32 * 1024
    assert block_bytes(shape, work) - attention_bytes(shape, work) == (19 + 4) * 4096


@pytest.mark.parametrize("case", PUBLISHED, ids=lambda case: case.name)
def test_published_figures_are_met_as_far_as_each_says(case) -> None:  # noqa: ANN001 - a case of the benchmark
    assert abs(case.deviation) <= case.allowed


def test_checkpointing_keeps_two_bytes_per_input_and_one_block() -> None:
    shape = Shape.of_gpt(24, 2048, 16, 0)
    full = sum(part.bytes or 0 for part in activations(shape, Workload(4, 1024, Checkpointing.FULL)))
    work = Workload(4, 1024)
    ends = full - 2 * 24 * 4096 * 2048 - 4096 * block_bytes(shape, work)
    assert 0 < ends < 4096 * 2048 * 4
    on_host = [part for part in activations(shape, Workload(4, 1024, Checkpointing.HOST)) if part.place is Place.HOST]
    assert [part.bytes for part in on_host] == [2 * 24 * 4096 * 2048]
    assert on_host[0].pinned


def test_activations_grow_with_the_batch_and_are_estimates() -> None:
    shape = Shape(32, 4096, 32, 8, 128, 14336, gated=True, kept_inner=4, vocabulary=128256, dropout=False, upcasts=True)
    one, four = (list(activations(shape, Workload(count))) for count in (1, 4))
    for small, large in zip(one, four, strict=True):
        assert large.bytes == pytest.approx(4 * (small.bytes or 0), abs=4)
        assert small.what is What.ACTIVATIONS
    assert (
        2 * sum(part.bytes or 0 for part in one)
        > sum(part.bytes or 0 for part in activations(shape, Workload(1), 4))
        > sum(part.bytes or 0 for part in one)
    )


def test_an_image_has_as_many_tokens_as_patches() -> None:
    shape = Shape(12, 768, 12, 12, 64, 3072, tokens=197)
    assert list(activations(shape, Workload(1, 9999))) == list(activations(shape, Workload(1, 1)))
    assert Model(1).largest is None
