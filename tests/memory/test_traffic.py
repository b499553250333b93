"""Communication as a function of the model, the GPUs and the micro-batches."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.memory import Collective, Model, Surety, Traffic, traffic

from .configs import HALF, Config, config, context

STAGES = (0, 1, 2, 3)
WAYS: tuple[Config, ...] = ({}, {"reduce_scatter": False}, {"use_multi_rank_bucket_allreduce": False})
CONTEXTS = {
    (stage, half, steps, number): context(config(stage, half, steps, **way))
    for stage in STAGES
    for half in HALF
    for steps in (1, 2, 8)
    for number, way in enumerate(WAYS)
}
scenes = st.sampled_from(sorted(CONTEXTS))
sizes = st.integers(10**9, 10**13)
ranks = st.integers(2, 4096)
Scene = tuple[int, str, int, int]


def said(wanted: Config, model: Model | None = None, gpus: int | None = None, version: str | None = None) -> Traffic:
    """Return the communication of a config."""
    found = traffic(context(wanted, version), model, gpus)
    assert found is not None
    return found


def at(scene: Scene, model: Model | None = None, gpus: int | None = None) -> Traffic:
    """Return the communication of a config that is there already."""
    found = traffic(CONTEXTS[scene], model, gpus)
    assert found is not None
    return found


@given(scenes)
def test_one_gpu_sends_nothing(scene: Scene) -> None:
    alone = at(scene, Model(10**9), 1)
    assert alone.transfers == ()
    assert alone.formula() == "0"
    assert alone.sent(Model(10**9), 1) == 0


@given(scenes, sizes, ranks, st.integers(2, 8))
def test_more_gpus_send_a_little_more_each_and_never_the_double(
    scene: Scene, size: int, gpus: int, factor: int
) -> None:
    """A ring sends (N - 1)/N of what it reduces or gathers."""
    model = Model(size)
    few, many = at(scene, model, gpus).sent(model, gpus), at(scene, model, gpus * factor).sent(model, gpus * factor)
    assert few is not None
    assert many is not None
    assert few <= many <= 2 * few


@given(scenes, sizes)
def test_the_formula_comes_to_the_elements(scene: Scene, size: int) -> None:
    model = Model(size)
    found = at(scene, model, 8)
    factor = re.fullmatch(r"([\d.]*)Ψ", found.formula())
    assert factor is not None
    elements = found.elements(model)
    assert elements is not None
    assert elements / size == pytest.approx(float(factor[1] or 1), abs=0.005)


@pytest.mark.parametrize("half", HALF)
@pytest.mark.parametrize("stage", STAGES)
def test_micro_batches_cost_from_stage_2_on(stage: int, half: str) -> None:
    model = Model(10**10)
    once, often = (said(config(stage, half, steps), model, 8).elements(model) for steps in (1, 5))
    assert once is not None
    assert often is not None
    weights = model.parameters if stage == 2 else 0  # gathered once per step
    assert often - weights == (5 if stage > 1 else 1) * (once - weights)


@pytest.mark.parametrize("stage", STAGES)
def test_formats_on_the_wire(stage: int) -> None:
    wide = {"communication_data_type": "fp32"}
    widths = [
        {one.width for one in said(config(stage, "bf16", 1, top)).transfers if one.what == "gradients"}
        for top in ({}, wide)
    ]
    assert widths == [{2}, {4}]
    assert {one.width for one in said(config(stage, "", 1)).transfers} == {4}


@pytest.mark.parametrize(
    ("zero", "kind"),
    [
        ({"stage": 0}, Collective.ALL_REDUCE),
        ({"stage": 2}, Collective.ALL_REDUCE),
        ({"stage": 2, "use_multi_rank_bucket_allreduce": False}, Collective.REDUCE),
        ({"stage": 1, "use_multi_rank_bucket_allreduce": False, "reduce_scatter": False}, Collective.ALL_REDUCE),
        ({"stage": 2, "use_multi_rank_bucket_allreduce": False, "contiguous_gradients": False}, Collective.ALL_REDUCE),
        ({"stage": 3}, Collective.REDUCE_SCATTER),
        ({"stage": 3, "reduce_scatter": False}, Collective.ALL_REDUCE),
        ({"stage": 3, "reduce_scatter": False, "contiguous_gradients": False}, Collective.REDUCE_SCATTER),
        ({"stage": 3, "zero_quantized_gradients": True}, Collective.ALL_TO_ALL),
    ],
)
def test_how_gradients_are_reduced(zero: Config, kind: Collective) -> None:
    found = said(config(**zero))
    assert {one.collective for one in found.transfers if one.what == "gradients"} == {kind}


def test_steps_that_are_not_known_stay_a_letter() -> None:
    open_steps = config(3)
    del open_steps["gradient_accumulation_steps"], open_steps["train_micro_batch_size_per_gpu"]
    assert said(open_steps).formula() == "3gΨ"
    open_steps["zero_optimization"]["stage"] = 2
    assert said(open_steps).formula() == "(2g + 1)Ψ"
    open_steps["zero_optimization"]["stage"] = 1
    assert said(open_steps).formula() == "3Ψ"
    assert said(open_steps).sent(Model(10**9), 8) is None


def test_a_small_model_is_gathered_once_per_micro_batch() -> None:
    """What stays gathered from forward to backward is not gathered again."""
    assert said(config(3), Model(10**8), 8).formula() == "2Ψ"
    assert said(config(3), Model(10**9), 8).formula() == "2.5Ψ"
    assert (
        said(config(3, stage3_max_reuse_distance=0, stage3_prefetch_bucket_size=0), Model(10**8), 8).formula() == "3Ψ"
    )


def test_small_tensors_are_gathered_once_per_step() -> None:
    model = Model.of([10**6] * 10 + [10**4] * 100)
    near = {"stage3_max_reuse_distance": 0, "stage3_prefetch_bucket_size": 0}
    found = said(config(3, "bf16", 4, **near), model, 8)
    gathered = sum(one.elements(model, 4) for one in found.transfers if one.what == "weights")
    assert gathered == 2 * 4 * 10**7 + 10**6


def test_groups_keep_gathers_inside() -> None:
    near = {"stage3_max_reuse_distance": 0, "stage3_prefetch_bucket_size": 0}
    found = said(config(3, "bf16", 4, zero_hpz_partition_size=8, **near), Model(10**10), 64)
    assert found.formula() == "5Ψ"  # one gather among all, four reductions
    inside = [one for one in found.transfers if one.group == 8]
    assert sum(one.elements(Model(100), 4) for one in inside) == 700
    alone = said(config(3, zero_hpz_partition_size=8, **near), Model(10**10), 4)
    assert {one.group for one in alone.transfers} == {0, 4}


def test_quantized_weights_cross_the_wire_in_a_byte() -> None:
    found = said(config(3, zero_quantized_weights=True), Model.of([10**9]), 8)
    widths = {one.width for one in found.transfers if one.what == "weights"}
    assert widths == {1}
    assert {one.surety for one in found.transfers if one.what == "weights"} == {Surety.ESTIMATE}


@pytest.mark.parametrize(("stage", "width"), [(1, 4), (2, 4), (3, 2)])
def test_sequence_parallelism_reduces_slices_in_fp32(stage: int, width: int) -> None:
    found = said(config(stage, "bf16", 1, {"sequence_parallel_size": 2}))
    assert {one.width for one in found.transfers if one.what == "gradients"} == {width}
