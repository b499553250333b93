"""What people and papers report to work comes out as they report it."""

from __future__ import annotations

import pytest

from dsmigrate.memory.activations import Checkpointing, Workload
from dsmigrate.memory.estimate import GIB, Machine
from dsmigrate.memory.sources import typical
from dsmigrate.memory.variants import VARIANTS, Variant
from dsmigrate.recommend import Recommendation, Request, recommend

V100 = 32 * GIB
DGX2 = Machine(gpus=16, gpu=V100, host=1536 * GIB, nvme=28_000 * 10**9)
ALONE = Machine(gpus=1, gpu=V100, host=1536 * GIB, nvme=28_000 * 10**9)


def asked(billions: float, machine: Machine, work: Workload | None = None, **more: object) -> Recommendation:
    """Return what is recommended for so many billions of parameters in fp16."""
    request = Request(typical(int(billions * 1e9)), machine, work or Workload(1, 1024), **{"half": "fp16", **more})  # type: ignore[arg-type]
    return recommend(request)


def fits(found: Recommendation, variant: Variant) -> bool:
    """Return whether a variant is among those that fit."""
    return variant in [one.variant for one in found.fitting]


def test_zero_offload_trains_13_billion_on_one_v100() -> None:
    """ZeRO-Offload (arXiv:2101.06840): stage 2 with the optimizer on the CPU, activations checkpointed."""
    found = asked(13, ALONE)
    assert found.chosen is not None
    assert found.chosen.variant == Variant(2, "cpu")
    assert found.chosen.checkpointing is Checkpointing.FULL
    assert not any(one.variant.optimizer == "none" for one in found.fitting)


def test_without_offload_1_4_billion_fit_on_one_v100() -> None:
    """The same paper, figure 7: 1.4 billion is the most that PyTorch trains; ten times as much is out of reach."""
    small = asked(1.4, ALONE)
    assert small.chosen is not None
    assert small.chosen.variant.optimizer == small.chosen.variant.weights == "none"
    assert all(one.variant.optimizer != "none" for one in asked(2.5, ALONE).fitting)


@pytest.mark.parametrize(
    ("billions", "variant"),
    [
        (1.2, Variant(0)),
        (13, Variant(2, "cpu")),
        (20, Variant(3)),
        (70, Variant(3, "cpu", "cpu")),
    ],
    ids=lambda value: str(value) if isinstance(value, (int, float)) else value.name,
)
def test_what_a_dgx_2_holds_by_strategy(billions: float, variant: Variant) -> None:
    """ZeRO-Infinity (arXiv:2104.07857), figure 6a: the largest model of each strategy on 16 V100 of 32 GB.

    It has 1.4 billion for data parallelism, which is PyTorch's. DeepSpeed's stage 0 holds the fp32 gradients twice for
    a moment of the step (24 bytes for each parameter, measured on a GPU): 1.4 billion do not fit there.
    """
    assert fits(asked(billions, DGX2), variant)
    assert not fits(asked(2.4 * billions, DGX2), variant)


def test_stage_0_holds_less_than_pytorch_does() -> None:
    assert not fits(asked(1.4, DGX2), Variant(0))


def test_zero_2_trains_13_billion_on_128_v100_without_model_parallelism() -> None:
    """ZeRO (arXiv:1910.02054), section 10.4, where data parallelism alone ends at 1.4 billion."""
    found = asked(13, Machine(gpus=16, nodes=8, gpu=V100), link="infiniband")
    assert fits(found, Variant(2))
    assert not fits(found, Variant(0))
    assert not fits(found, Variant(1))


def test_a_trillion_on_one_dgx_2_needs_nvme_and_today_more_host_memory_than_the_paper_had() -> None:
    """The paper's 1T on 1.5 TB: 0.19.8 keeps the 16-bit sums of gradients on the host, 2 bytes per parameter."""
    most = asked(1000, DGX2, nvme_path="/nvme")
    assert most.fitting == ()
    assert [one.estimate.lacks for one in most.failing if one.variant == Variant(3, "nvme", "nvme")] == [("host",)]
    large = Machine(gpus=16, gpu=V100, host=3072 * GIB, nvme=28_000 * 10**9)
    found = asked(1000, large, nvme_path="/nvme")
    assert found.chosen is not None
    assert found.chosen.variant == Variant(3, "nvme", "nvme")
    half = asked(500, DGX2, nvme_path="/nvme")
    assert half.chosen is not None
    assert half.chosen.variant.uses_nvme


@pytest.mark.parametrize("billions", [6.7, 7, 8])
def test_7_billion_on_eight_a100_take_stage_2_without_offload(billions: float) -> None:
    found = asked(billions, Machine(gpus=8, gpu=80 * GIB), Workload(1, 2048), half="bf16", hardware="a100")
    assert found.chosen is not None
    assert found.chosen.variant == Variant(2)
    assert found.chosen.checkpointing is Checkpointing.NONE
    assert not fits(found, Variant(0))


def test_7_billion_on_one_a100_of_80_gib_take_offload() -> None:
    """16 bytes per parameter are 112 GB: full training needs the host, as threads about it say."""
    found = asked(7, Machine(gpus=1, gpu=80 * GIB, host=256 * GIB), Workload(1, 2048), half="bf16")
    assert found.chosen is not None
    assert found.chosen.variant.optimizer == "cpu"


def test_70_billion_on_eight_a100_take_the_host_and_on_thirty_two_none() -> None:
    """DeepSpeed-Chat trains LLaMA-2 70B on more than one node of eight A100-80 unless it offloads."""
    one = asked(70, Machine(gpus=8, gpu=80 * GIB, host=2048 * GIB), Workload(1, 2048), half="bf16")
    assert one.chosen is not None
    assert one.chosen.variant.stage == 3
    assert one.chosen.variant.optimizer == "cpu"
    four = asked(70, Machine(gpus=8, nodes=4, gpu=80 * GIB), Workload(1, 2048), half="bf16", link="infiniband")
    assert four.chosen is not None
    assert four.chosen.variant == Variant(3)
    assert fits(four, Variant(3, group=8))


def test_a_small_model_needs_no_zero() -> None:
    found = asked(0.125, Machine(gpus=8, gpu=80 * GIB), half="bf16")
    assert found.chosen is not None
    assert found.chosen.variant == Variant(0)


def test_fp16_without_zero_is_passed_over_for_what_the_rules_say_of_it() -> None:
    found = asked(0.125, Machine(gpus=8, gpu=80 * GIB), half="fp16")
    assert found.chosen is not None
    assert found.chosen.variant.stage > 0
    assert found.fitting[-1].variant == Variant(0)
    assert [finding.code for finding in found.fitting[-1].findings] == ["DS302"]


def test_slow_links_prefer_fewer_bytes_and_accumulation_prefers_stage_1() -> None:
    machine = Machine(gpus=8, nodes=4, gpu=80 * GIB)
    found = asked(1.3, machine, half="bf16", link="ethernet", steps=16, variants=VARIANTS[1:4])
    plain = [one for one in found.fitting if not one.variant.group]
    assert [one.variant.stage for one in plain] == [1, 2, 3]
    times = [one.seconds.total for one in plain]
    assert times[0] < times[1] < times[2]


def test_nothing_fits_where_there_is_too_little_of_all() -> None:
    found = asked(70, Machine(gpus=1, gpu=8 * GIB, host=16 * GIB))
    assert found.chosen is None
    assert {name for one in found.failing for name in one.estimate.lacks} == {"GPU", "host"}
