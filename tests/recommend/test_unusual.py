"""What changes numbers or asks for changes of the script is first only where nothing else fits, and is said to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dsmigrate.knowledge import Consumer
from dsmigrate.memory.activations import Attention, Workload
from dsmigrate.memory.estimate import GIB, Machine
from dsmigrate.memory.sources import typical
from dsmigrate.memory.variants import VARIANTS, Variant
from dsmigrate.recommend import Candidate, Recommendation, Request, recommend
from dsmigrate.recommend.reasons import notes, reasons

EIGHT = Machine(gpus=8, gpu=80 * GIB)
POOR = Machine(gpus=1, gpu=80 * GIB, host=64 * GIB)
LONG = Request(typical(8_000_000_000), EIGHT, Workload(1, 131072), samples=8, variants=(Variant(2), Variant(3)))
FEW = (Variant(2), Variant(3), Variant(3, "cpu"))
LOW = Request(typical(7_000_000_000), POOR, Workload(), samples=128, variants=FEW)
SHARED = "shares each sample among 8 GPUs, which the script has to do"


def chosen(request: Request) -> Candidate:
    """Return the first that fits, which there is."""
    one = recommend(request).chosen
    assert one is not None
    return one


def variants(found: Recommendation) -> list[Variant]:
    """Return what fits and what does not."""
    return [one.variant for one in (*found.fitting, *found.failing)]


def test_what_is_plain_stays_first_where_it_is_slower() -> None:
    request = replace(LONG, work=Workload(1, 32768), variants=VARIANTS)
    found = recommend(request)
    assert found.chosen is not None
    assert found.chosen.variant.is_plain
    last = [one for one in found.fitting if not one.variant.is_plain]
    assert found.fitting[-len(last) :] == tuple(last)
    assert any(one.variant.sequence > 1 for one in last)
    assert any(one.variant.low for one in last)
    assert all(one.seconds.total < found.chosen.seconds.total for one in last)
    price = f"At the price of changes of the script: {last[0].variant.name}, "
    said = [note for note in notes(found) if note.startswith(price)]
    assert len(said) == 1, (notes(found), found.chosen.variant)


@pytest.mark.parametrize("request_", [LONG, LOW], ids=["Ulysses", "bf16"])
def test_a_conversion_takes_nothing_of_it(request_: Request) -> None:
    found = recommend(replace(request_, plain=True))
    assert found.chosen is None
    assert all(variant.is_plain for variant in variants(found))


def test_states_in_bf16_are_written_with_a_second_moment_that_decays() -> None:
    one = chosen(LOW)
    assert one.variant.low
    names = ("enabled", "bf16_master_weights_and_grads", "bf16_optimizer_states")
    assert one.config["bf16"] == dict.fromkeys(names, True)
    assert one.config["optimizer"]["params"]["betas"] == [0.9, 0.95]
    said = notes(recommend(LOW))
    assert any(note.startswith("Nothing fits that keeps the numbers") for note in said)
    assert any("about 1/256 of its weight is lost" in note for note in said)
    assert "changes numbers: master weights and optimizer states are in bf16" in reasons(one)


def test_states_in_bf16_are_for_bf16_whole_models_and_releases_that_have_them() -> None:
    for other in (replace(LOW, half="fp16"), replace(LOW, version="0.16.4")):
        assert not any(variant.low for variant in variants(recommend(other)))


@pytest.mark.parametrize(("version", "offloads"), [("0.19.0", False), ("0.19.1", True)])
def test_states_in_bf16_are_kept_on_the_host_since_0_19_1(version: str, *, offloads: bool) -> None:
    more = replace(POOR, host=96 * GIB)
    offered = [variant for variant in variants(recommend(replace(LOW, machine=more, version=version))) if variant.low]
    assert any(variant.optimizer == "cpu" for variant in offered) is offloads


def test_accelerate_makes_no_optimizer_on_the_cpu_with_states_in_bf16() -> None:
    offered = [variant for variant in variants(recommend(replace(LOW, consumer=Consumer.ACCELERATE))) if variant.low]
    assert offered
    assert all(variant.optimizer == "none" for variant in offered)


def test_a_shared_sample_takes_more_micro_batches_for_as_many_samples() -> None:
    one = chosen(LONG)
    sizes = one.config["train_micro_batch_size_per_gpu"], one.config["gradient_accumulation_steps"]
    assert (one.variant.sequence, one.config["sequence_parallel_size"], *sizes) == (8, 8, 1, 8)
    fixed = chosen(replace(LONG, samples=None, steps=2))
    assert fixed.config["gradient_accumulation_steps"] == 16
    assert any("UlyssesSPAttentionHF.register_with_transformers" in note for note in notes(recommend(LONG)))
    assert any(reason.startswith(SHARED) for reason in reasons(one))


@pytest.mark.parametrize("consumer", [Consumer.TRANSFORMERS, Consumer.ACCELERATE])
def test_accelerate_splits_samples_without_a_key(consumer: Consumer) -> None:
    """With it ``zero.Init`` of the Trainer stops: 32 is not 1 * 4 * 1.0."""
    found = recommend(replace(LONG, consumer=consumer))
    assert found.chosen is not None
    assert found.chosen.variant.sequence == 8
    assert "sequence_parallel_size" not in found.chosen.config
    assert found.chosen.estimate.peak == chosen(LONG).estimate.peak
    assert any('ParallelismConfig(sp_backend="deepspeed", sp_size=8)' in note for note in notes(found))
    assert any("gradient_accumulation_steps 8." in note for note in notes(found))


@pytest.mark.parametrize(
    "other",
    [
        replace(LONG, work=Workload(1, 8192)),
        replace(LONG, work=Workload(1, 131072, attention=Attention.EAGER)),
        replace(LONG, version="0.16.4"),
        replace(LONG, machine=replace(EIGHT, gpus=1)),
        replace(LONG, described=typical(8_000_000_000, 32, 4096, 1)),
    ],
    ids=["short", "eager", "release", "one GPU", "heads"],
)
def test_samples_are_shared_where_ulysses_can(other: Request) -> None:
    assert all(variant.sequence == 1 for variant in variants(recommend(other)))


def test_keys_and_queries_divide() -> None:
    """32 heads and 8 for keys: 6 GPUs divide neither, and 12 have no number of their own."""
    found = recommend(replace(LONG, machine=replace(EIGHT, gpus=6), work=Workload(1, 49152)))
    assert {variant.sequence for variant in variants(found)} <= {1, 2}
