"""Figures that papers and DeepSpeed's own text publish, beside those of the model."""

from __future__ import annotations

import pytest

from dsmigrate.memory import STATES, Model, Place, Usage, text, traffic, usage

from .configs import Config, config, context, offload, offload_weights

GB = 10**9


def found(wanted: Config, parameters: int | None = None, ranks: int | None = None) -> Usage:
    """Return the memory of a config."""
    said = usage(context(wanted), Model(parameters) if parameters else None, ranks)
    assert said is not None
    return said


@pytest.mark.parametrize(("stage", "gigabytes"), [(0, 120), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_the_table_of_the_zero_paper(stage: int, gigabytes: float) -> None:
    """ZeRO (arXiv:1910.02054, figure 1): 7.5 billion parameters, 64 GPUs, Adam in mixed precision."""
    states = found(config(stage, "fp16"), 7_500_000_000, 64).bytes(Place.GPU, STATES)
    assert states is not None
    assert states / GB == pytest.approx(gigabytes, abs=0.05)


@pytest.mark.parametrize(
    ("wanted", "on_gpu", "on_host"),
    [
        (config(0, ""), "16Ψ", "0"),
        (config(1, ""), "8Ψ + 12Ψ/N", "0"),
        (config(2, ""), "4Ψ + 16Ψ/N", "0"),
        (config(3, ""), "20Ψ/N", "0"),
        (config(1, **offload()), "4Ψ", "18Ψ/N"),
        (config(2, **offload()), "2Ψ", "18Ψ/N"),
        (config(2, **offload("nvme")), "2Ψ", "18Ψ/N"),
        (config(2, "bf16", 4, **offload()), "2Ψ", "20Ψ/N"),
        (config(3, **offload()), "2Ψ/N", "18Ψ/N"),
        (config(3, **offload(), **offload_weights()), "0", "20Ψ/N"),
        (config(3, **offload_weights()), "14Ψ/N", "2Ψ/N"),
        (config(3, zero_hpz_partition_size=8), "2Ψ/8 + 16Ψ/N", "0"),
        (config(1, "bf16", 1, {"data_types": {"grad_accum_dtype": "fp32"}}), "8Ψ + 12Ψ/N", "0"),
        (config(2, "bf16", 1, {"data_types": {"grad_accum_dtype": "fp32"}}), "2Ψ + 16Ψ/N", "0"),
        (config(3, "bf16", 1, {"data_types": {"grad_accum_dtype": "fp32"}}), "18Ψ/N", "0"),
        (config(2, "bf16", 1, {"optimizer": {"type": "SGD", "params": {"lr": 1}}}), "2Ψ + 6Ψ/N", "0"),
        (config(2, "bf16", 1, {"optimizer": {"type": "Lion", "params": {"lr": 1}}}), "2Ψ + 10Ψ/N", "0"),
        (config(0, "", 1, {"optimizer": {"type": "SGD", "params": {"lr": 1, "momentum": 0.9}}}), "12Ψ", "0"),
        (config(2, "bf16", 1, {"bf16": {"bf16_master_weights_and_grads": True}}, **offload()), "2Ψ", "14Ψ/N"),
        (config(0, "bf16", 1, {"bf16": {"bf16_master_weights_and_grads": True}}), "16Ψ", "0"),
    ],
    ids=lambda value: "" if isinstance(value, str) else None,
)
def test_formulas(wanted: Config, on_gpu: str, on_host: str) -> None:
    assert text(found(wanted).select(Place.GPU, STATES)) == on_gpu
    assert text(found(wanted).select(Place.HOST)) == on_host


def test_states_on_nvme_leave_the_sums_on_the_host() -> None:
    """ZeRO-Infinity: gradients, master weights and Adam's states on NVMe, 16-bit sums and buffers on the host."""
    said = found(config(3, **offload("nvme", buffer_count=4), sub_group_size=10**8), 10**10, 10)
    assert text(said.select(Place.NVME)) == "16Ψ/N"
    assert text(said.select(Place.HOST)) == "2Ψ/N"
    assert said.bytes(Place.HOST) == 2 * 10**9 + 4 * 4 * 10**8


def test_weights_on_nvme_leave_through_a_buffer_for_whole_tensors() -> None:
    """The buffer has the size that the largest sub-group has on all ranks together, on each of them."""
    wanted = config(3, **offload("nvme"), **offload_weights("nvme", max_in_cpu=0), sub_group_size=10**8)
    parts = found(wanted, 10**10, 8).select(Place.HOST)
    assert [part.bytes for part in parts if "updated weights" in part.says] == [2 * 8 * 10**8]
    in_memory = config(3, **offload("nvme"), **offload_weights("nvme", max_in_cpu=10**10), sub_group_size=10**8)
    assert not [part for part in found(in_memory, 10**10, 8).parts if "updated weights" in part.says]


def test_thirteen_billion_on_one_v100_with_zero_offload() -> None:
    """ZeRO-Offload (arXiv:2101.06840) trains 13 billion parameters on one V100 of 32 GB; without it 1.4 billion fit."""
    memory = 32 * 2**30
    with_offload = found(config(2, "fp16", 1, **offload()), 13 * 10**9, 1).peak()
    without = found(config(0, "fp16"), 13 * 10**9, 1).peak()
    small = found(config(0, "fp16"), 14 * 10**8, 1).peak()
    assert with_offload is not None
    assert without is not None
    assert small is not None
    assert with_offload < memory < without
    assert small < memory


@pytest.mark.parametrize(
    ("stage", "steps", "formula"),
    [(0, 1, "2Ψ"), (0, 8, "2Ψ"), (1, 1, "3Ψ"), (1, 8, "3Ψ"), (2, 1, "3Ψ"), (2, 8, "17Ψ"), (3, 1, "3Ψ"), (3, 8, "24Ψ")],
)
def test_volumes_of_a_step(stage: int, steps: int, formula: str) -> None:
    """Stage 1 and 2 all-reduce by default, where the paper reduce-scatters: 2Ψ in place of Ψ."""
    said = traffic(context(config(stage, "bf16", steps)))
    assert said is not None
    assert said.formula() == formula


@pytest.mark.parametrize("stage", [1, 2])
def test_volumes_of_the_paper_need_a_reduction_by_owner(stage: int) -> None:
    said = traffic(context(config(stage, use_multi_rank_bucket_allreduce=False)))
    assert said is not None
    assert said.formula() == "2Ψ"


def test_older_releases_reduce_by_owner() -> None:
    """``use_multi_rank_bucket_allreduce`` came with 0.12.4, and was on at once."""
    for version, formula in (("0.12.3", "2Ψ"), ("0.12.4", "3Ψ")):
        said = traffic(context(config(2), version))
        assert said is not None
        assert said.formula() == formula
