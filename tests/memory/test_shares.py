"""Memory as a function of the model and the number of GPUs."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.memory import (
    STATES,
    Model,
    Over,
    Part,
    Place,
    Surety,
    Usage,
    What,
    When,
    sub_groups,
    text,
    traffic,
    usage,
)

from .configs import HALF, Config, config, context, offload, offload_weights

STAGES = (0, 1, 2, 3)
PLACES: tuple[Config, ...] = ({}, offload(), offload("nvme"), offload() | offload_weights(), offload_weights("nvme"))
CONTEXTS = {
    (stage, half, steps, number): context(config(stage, half, steps, **place))
    for stage in STAGES
    for half in HALF
    for steps in (1, 4)
    for number, place in enumerate(PLACES)
}
scenes = st.sampled_from(sorted(CONTEXTS))
sizes = st.integers(1, 10**13)
ranks = st.integers(1, 4096)
tensors = st.lists(st.integers(1, 10**9), min_size=1, max_size=30).map(tuple)
Scene = tuple[int, str, int, int]


def said(scene: Scene, model: Model | None, gpus: int | None) -> Usage:
    """Return the memory of a config."""
    found = usage(CONTEXTS[scene], model, gpus)
    assert found is not None
    return found


@given(scenes, sizes, sizes, ranks)
def test_a_larger_model_takes_no_less(scene: Scene, one: int, other: int, gpus: int) -> None:
    small, large = (said(scene, Model(size), gpus) for size in sorted((one, other)))
    for place in Place:
        assert (small.bytes(place) or 0) <= (large.bytes(place) or 0)
    assert (small.peak() or 0) <= (large.peak() or 0)


@given(scenes, tensors, ranks, st.integers(2, 8))
def test_more_gpus_take_no_more_each(scene: Scene, shape: tuple[int, ...], gpus: int, factor: int) -> None:
    model = Model.of(shape)
    few, many = (said(scene, model, count) for count in (gpus, gpus * factor))
    padding = 16 * 2 * gpus * factor
    for place in Place:
        assert (many.bytes(place, STATES) or 0) <= (few.bytes(place, STATES) or 0) + padding


@given(scenes, tensors, ranks)
def test_shards_cover_the_model_with_little_padding(scene: Scene, shape: tuple[int, ...], gpus: int) -> None:
    model = Model.of(shape)
    padding = gpus * len(shape) if scene[0] > 2 else 2 * gpus
    for part in said(scene, model, gpus).parts:
        assert part.count is not None
        if part.over is Over.SHARD:
            assert model.parameters <= part.count * gpus <= model.parameters + padding
        elif part.over is Over.MODEL:
            assert model.parameters <= part.count < model.parameters + 2 * gpus


@given(st.sampled_from(HALF), sizes, st.integers(2, 4096))
def test_a_higher_stage_holds_no_more_model_states(half: str, size: int, gpus: int) -> None:
    states = [said((stage, half, 1, 0), Model(size), gpus).bytes(Place.GPU, STATES) or 0 for stage in STAGES]
    padding = 16 * 2 * gpus
    assert all(more + padding >= less for more, less in itertools.pairwise(states))


@given(scenes, sizes, ranks)
def test_offload_moves_and_loses_nothing(scene: Scene, size: int, gpus: int) -> None:
    """Weights, master weights and states are as many bytes wherever they lie."""
    stage, half, steps, _ = scene
    kinds = (What.PARAMETERS, What.MASTERS, What.OPTIMIZER)
    here, there = said((stage, half, steps, 0), Model(size), gpus), said(scene, Model(size), gpus)
    assert sum(here.bytes(place, kinds) or 0 for place in Place) == sum(
        there.bytes(place, kinds) or 0 for place in Place
    )
    assert (there.bytes(Place.GPU, STATES) or 0) <= (here.bytes(Place.GPU, STATES) or 0)


@given(scenes, st.integers(1, 10**6), st.integers(1, 512))
def test_formulas_come_to_the_bytes(scene: Scene, unit: int, gpus: int) -> None:
    found = said(scene, Model(unit * 2 * gpus), gpus)
    for place in Place:
        shares = [part for part in found.select(place) if part.over is not Over.COUNT]
        assert evaluated(text(shares), unit * 2 * gpus, gpus) == sum(part.bytes or 0 for part in shares)


def evaluated(formula: str, parameters: int, gpus: int) -> float:
    """Return the value of a formula such as "2Ψ + 14Ψ/N"."""
    terms = [re.fullmatch(r"([\d.]*)(Ψ?)(/N)?", term) for term in formula.split(" + ")]
    values: list[float] = []
    for term in terms:
        assert term is not None, formula
        values.append(float(term[1] or 1) * (parameters if term[2] else 1) / (gpus if term[3] else 1))
    return sum(values)


@given(scenes, sizes, ranks)
def test_the_peak_is_between_what_stands_and_everything(scene: Scene, size: int, gpus: int) -> None:
    found = said(scene, Model(size), gpus)
    for place in Place:
        peak, always, everything = found.peak(place), found.bytes(place, when=(When.ALWAYS,)), found.bytes(place)
        assert peak is not None
        assert always is not None
        assert everything is not None
        assert always <= peak <= everything


@pytest.mark.parametrize("scene", sorted(CONTEXTS))
def test_without_a_model_there_are_formulas_and_no_bytes(scene: Scene) -> None:
    found, known = said(scene, None, None), said(scene, Model(10**9), 8)
    for place in Place:
        # weights on NVMe are split by `max_in_cpu`, a number that only a model can be compared with
        if scene[3] != len(PLACES) - 1:
            assert text(found.select(place)) == text(known.select(place))
    assert found.bytes(Place.GPU, STATES) in {None, 0}
    assert known.peak() is not None


def test_facts_beside_the_file_stand_in_for_model_and_ranks() -> None:
    wanted = config(2)
    assert usage(context(wanted, world_size=8, parameters=10**9)) == usage(context(wanted), Model(10**9), 8)
    parallel = wanted | {"tensor_parallel": {"autotp_size": 4}}
    assert usage(context(parallel, world_size=8, parameters=10**9)) == usage(context(parallel), Model(10**9), 2)


@given(tensors, st.integers(1, 64), st.integers(1, 10**9))
def test_sub_groups_are_those_of_deepspeed(shape: tuple[int, ...], gpus: int, most: int) -> None:
    """deepspeed/runtime/zero/stage3.py:_create_fp16_sub_groups"""
    shards = [math.ceil(size / gpus) for size in shape]
    groups, held = [], 0
    for number, shard in enumerate(shards):
        held += shard
        if held >= most or number == len(shards) - 1:
            groups.append(held)
            held = 0
    wanted = 1 if most >= sum(shards) else len(groups)
    assert sub_groups(context(config(3, sub_group_size=most)), Model.of(shape), gpus) == wanted


@given(tensors, st.integers(0, 10**9), st.integers(0, 10**10))
def test_small_tensors_stay_gathered(shape: tuple[int, ...], most: int, together: int) -> None:
    """deepspeed/runtime/zero/parameter_offload.py:mark_persistent_parameters"""
    stay = 0
    for size in shape:
        if size + stay <= together and size <= most:
            stay += size
    wanted = {"stage3_param_persistence_threshold": most, "stage3_model_persistence_threshold": together}
    found = usage(context(config(3, **wanted)), Model.of(shape), 8)
    assert found is not None
    assert (found.bytes(Place.GPU, (What.GATHERED,), (When.ALWAYS,)) or 0) == 2 * stay


@pytest.mark.parametrize(
    ("zero", "buckets"),
    [
        ({"stage": 1}, 2e9),
        ({"stage": 1, "overlap_comm": True}, 4e9),
        ({"stage": 2, "contiguous_gradients": False}, 0),
        ({"stage": 2, "contiguous_gradients": False, **offload()}, 2e9),
        ({"stage": 3}, 2e9),
        ({"stage": 3, "overlap_comm": False}, 2e9),
        ({"stage": 0}, 0),
    ],
)
def test_buckets(zero: dict[str, Any], buckets: float) -> None:
    """A bucket is as large as its key says, whatever the size of the model; stage 1 and 2 have two with overlap."""
    found = usage(context(config(**zero, reduce_bucket_size=10**9)), Model(1000), 8)
    assert found is not None
    assert found.bytes(Place.GPU, (What.BUCKETS,)) == buckets


def test_two_parts_on_the_gpu_with_half_of_the_optimizer_offloaded() -> None:
    found = usage(context(config(3, **offload(ratio=0.5), sub_group_size=10**8)), Model(16 * 10**8), 4)
    assert found is not None
    kinds = (What.MASTERS, What.OPTIMIZER)
    assert found.bytes(Place.GPU, kinds) == found.bytes(Place.HOST, kinds) == 12 * 2 * 10**8
    assert {part.surety for part in found.select(what=kinds)} == {Surety.ESTIMATE}


def test_known_tensors_tell_which_sub_groups_stay_on_the_gpu() -> None:
    """Of three sub-groups a third of the optimizer is one: the first, whatever its size."""
    wanted = context(config(3, **offload(ratio=0.6), sub_group_size=10**6))
    found = usage(wanted, Model.of([16 * 10**6, 8 * 10**6, 8 * 10**6]), 8)
    assert found is not None
    assert found.bytes(Place.GPU, (What.MASTERS,)) == 4 * 2 * 10**6
    assert found.bytes(Place.HOST, (What.MASTERS,)) == 4 * 2 * 10**6


def test_what_the_config_leaves_open_is_said() -> None:
    bare = usage(context({"train_batch_size": 8, "fp16": {"enabled": True}, "zero_optimization": {"stage": 1}}))
    assert bare is not None
    assert bare.assumes == ("an optimizer with two states per parameter, as Adam",)
    full = usage(context(config(1)))
    assert full is not None
    assert full.assumes == ()


def test_parts_have_bytes_of_their_own() -> None:
    part = Part(What.BUCKETS, Place.GPU, When.ALWAYS, 0.5, Over.COUNT, 3, "half a byte each")
    assert part.bytes == 2


def test_the_groups_of_mics_share_everything_in_the_releases_that_have_them() -> None:
    """deepspeed/runtime/zero/mics.py; removed with 0.19.7."""
    wanted = config(3, mics_shard_size=8)
    states = {}
    for version in ("0.9.1", "0.9.2", "0.16.4", "0.19.6", "0.19.8"):
        found = usage(context(wanted, version), Model(8 * 10**9), 64)
        assert found is not None
        states[version] = (found.bytes(Place.GPU, STATES) or 0) / 10**9
    assert states == {"0.9.1": 2, "0.9.2": 16, "0.16.4": 16, "0.19.6": 16, "0.19.8": 2}
    sent = traffic(context(wanted, "0.16.4"), Model(8 * 10**9), 64)
    assert sent is not None
    assert [(one.collective.value, one.group, one.portion) for one in sent.transfers if one.across] == [
        ("all-reduce", 8, 1 / 8)
    ]
    assert {one.group for one in sent.transfers} == {8}
    assert sent.formula() == "0.25Ψ"


def test_the_second_shard_counts_in_the_releases_that_have_it() -> None:
    """``zero_hpz_partition_size`` came with 0.10.0."""
    wanted = config(3, zero_hpz_partition_size=8)
    for version, more in (("0.9.5", 0), ("0.10.0", 2 * 10**9), ("0.14.5", 2 * 10**9), ("0.19.8", 2 * 10**9)):
        found = usage(context(wanted, version), Model(8 * 10**9), 64)
        assert found is not None
        assert found.bytes(Place.GPU, (What.PARAMETERS,)) == 2 * 10**9 // 8 + more


def test_frozen_weights_are_held_and_gathered_and_nothing_else() -> None:
    model = Model(10**7, frozen=(10**9,) * 7)
    for stage, share in ((0, 1), (1, 1), (2, 1), (3, 8)):
        found, sent = usage(context(config(stage)), model, 8), traffic(context(config(stage)), model, 8)
        assert found is not None
        assert sent is not None
        frozen = [part.bytes for part in found.parts if part.says.startswith("frozen weights")]
        assert frozen == [14 * 10**9 // share]
        moved = [(one.what, one.elements(model, 1)) for one in sent.transfers]
        assert ("gradients", 10**7) in moved
        first = next((count for what, count in moved if what == "weights"), 0)
        assert first == (0 if not stage else 10**7 if stage < 3 else 10**7 + 7 * 10**9)
    quantised = usage(context(config(3, zero_quantized_nontrainable_weights=True)), model, 8)
    assert quantised is not None
    assert [part.bytes for part in quantised.parts if "frozen" in part.says] == [7 * 10**9 // 8]
