from __future__ import annotations

import pytest

from dsmigrate.editing.derived import Unmet, unmet
from dsmigrate.editing.derived.force import in_force
from dsmigrate.knowledge import Consumer
from dsmigrate.rules.context import UNKNOWN

from .contexts import context

ZERO = "zero_optimization"
STAGE = f"{ZERO}.stage"


def condition(members: str, path: str, *, consumer: Consumer = Consumer.DEEPSPEED) -> Unmet | None:
    here = context(members, consumer=consumer)
    key = here.known.key(path)
    assert key is not None
    return unmet(here, key, tuple(path.split(".")))


@pytest.mark.parametrize(
    ("members", "path", "found"),
    [
        ('"zero_optimization": {"stage": 2}', f"{ZERO}.stage3_max_live_parameters", Unmet(STAGE, 2, [3])),
        ('"zero_optimization": {"stage": 2}', f"{ZERO}.offload_param.pin_memory", Unmet(STAGE, 2, [3])),
        ('"zero_optimization": {"stage": "2"}', f"{ZERO}.sub_group_size", Unmet(STAGE, 2, [3])),
        (
            '"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}',
            f"{ZERO}.offload_optimizer.buffer_count",
            Unmet(f"{ZERO}.offload_optimizer.device", "cpu", ["nvme"]),
        ),
        ('"fp16": {"loss_scale": 0}', "fp16.hysteresis", Unmet("fp16.enabled", held=False, wanted=[True])),
        (
            '"fp16": {"enabled": true, "loss_scale": 128}',
            "fp16.hysteresis",
            Unmet("fp16.loss_scale", 128, [0]),
        ),
    ],
)
def test_the_first_condition_that_does_not_hold_is_found(members: str, path: str, found: Unmet) -> None:
    assert condition(members, path) == found


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ('"zero_optimization": {"stage": 3}', f"{ZERO}.stage3_max_live_parameters"),
        ('"zero_optimization": {"stage": []}', f"{ZERO}.stage3_max_live_parameters"),
        ('"fp16": {"enabled": true, "loss_scale": 0.0}, "zero_optimization": {"stage": 1}', "fp16.hysteresis"),
        ('"gradient_allreduce_op": "MEAN"', "prescale_gradients"),
    ],
)
def test_conditions_that_hold_or_make_no_sense_are_none(members: str, path: str) -> None:
    assert condition(members, path) is None


def test_one_of_several_conditions_is_enough() -> None:
    found = condition('"aio": {"queue_depth": 8}', "aio.queue_depth")
    assert found is not None
    assert found.path == STAGE
    assert found.alternatives == (
        '`zero_optimization.stage` is `3` and `zero_optimization.offload_optimizer.device` is `"nvme"` or when '
        '`zero_optimization.stage` is `3` and `zero_optimization.offload_param.device` is `"nvme"` or when '
        '`checkpoint.writer` is there and `checkpoint.writer.type` is `"FAST"`, `"Fast"` or `"fast"`'
    )
    for members in (
        '"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}',
        '"checkpoint": {"writer": {}}',
    ):
        assert condition(members, "aio.queue_depth") is None


def test_what_the_consumer_decides_may_hold() -> None:
    members = '"zero_optimization": {"stage": "auto"}'
    path = f"{ZERO}.stage3_max_live_parameters"
    assert condition(members, path, consumer=Consumer.ACCELERATE) is None
    assert condition(members, path) == Unmet(STAGE, 0, [3])


@pytest.mark.parametrize(
    ("members", "path", "value"),
    [
        ('"zero_optimization": {"stage": 3}', f"{ZERO}.overlap_comm", True),
        ('"zero_optimization": {"stage": 2}', f"{ZERO}.overlap_comm", False),
        ('"zero_optimization": {"stage": 2, "overlap_comm": "yes"}', f"{ZERO}.overlap_comm", True),
        ('"zero_optimization": {"stage": []}', f"{ZERO}.overlap_comm", UNKNOWN),
        ('"zero_optimization": {"stage": 1, "contiguous_gradients": false}', f"{ZERO}.contiguous_gradients", False),
        ('"zero_optimization": {"cpu_offload": true}', f"{ZERO}.offload_optimizer.device", "cpu"),
        ('"zero_optimization": true', STAGE, 1),
        ('"zero_optimization": {"stage": 7}', STAGE, UNKNOWN),
        ('"bfloat16": {"enabled": true}', "bf16.enabled", True),
        (
            '"zero_optimization": {"stage": 3, "allgather_sequential": true, "prefetch_bucket_size": 5e7}',
            f"{ZERO}.stage3_prefetch_bucket_size",
            1,
        ),
    ],
)
def test_what_counts_is_what_deepspeed_makes_of_it(members: str, path: str, value: object) -> None:
    assert in_force(context(members), path) == value
