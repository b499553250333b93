from __future__ import annotations

import pytest

from dsmigrate.editing.derived import Precision, precision
from dsmigrate.editing.derived.precision import buckets_by_parameter
from dsmigrate.knowledge import Consumer

from .contexts import context

FP32 = Precision("fp32", "", "fp32", "fp32", "fp32")


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ("", FP32),
        ('"fp16": {"enabled": false}', FP32),
        ('"fp16": {"enabled": true}', Precision("fp16", "", "fp16", "fp16", "fp32")),
        ('"bf16": {"enabled": true}', Precision("bf16", "", "bf16", "bf16", "fp32")),
        ('"bf16": {"enabled": "yes"}', Precision("bf16", "", "bf16", "bf16", "fp32")),
        ('"bfloat16": {"enabled": true}', Precision("bf16", "", "bf16", "bf16", "fp32")),
        ('"bfloat16": {"enabled": true}, "bf16": {}', FP32),
        (
            '"bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}',
            Precision("bf16", "", "fp32", "bf16", "fp32"),
        ),
        ('"bf16": {"enabled": true}, "communication_data_type": "FP32"', Precision("bf16", "", "bf16", "fp32", "fp32")),
        (
            '"torch_autocast": {"enabled": true, "dtype": "bfloat16"}',
            Precision("fp32", "bf16", "fp32", "fp32", "fp32"),
        ),
        (
            '"bf16": {"enabled": true, "bf16_master_weights_and_grads": true}',
            Precision("bf16", "", "bf16", "bf16", "bf16"),
        ),
        (
            '"bf16": {"enabled": true}, "sequence_parallel_size": 2, "data_parallel_size": 2',
            Precision("bf16", "", "bf16", "fp32", "fp32"),
        ),
    ],
)
def test_formats_follow_from_the_switches(members: str, found: Precision) -> None:
    assert precision(context(members)) == found


def test_what_the_trainer_decides_is_open() -> None:
    found = precision(context("", consumer=Consumer.TRANSFORMERS))
    assert (found.weights, found.communication) == (None, None)
    written = precision(
        context('"bf16": {"enabled": "auto"}, "fp16": {"enabled": false}', consumer=Consumer.ACCELERATE)
    )
    assert written.weights is None


def test_releases_without_autocast_do_not_look_at_it() -> None:
    members = '"torch_autocast": {"enabled": true, "dtype": "bf16"}'
    assert precision(context(members, version="0.16.0")).autocast == ""
    assert precision(context(members)).autocast == "bf16"


@pytest.mark.parametrize(
    ("members", "version", "split"),
    [
        ('"torch_autocast": {"enabled": true}', None, True),
        ('"torch_autocast": {"enabled": true}', "0.17.1", False),
        ('"torch_autocast": {"enabled": true, "lower_precision_safe_modules": []}', None, False),
        ("", None, False),
    ],
)
def test_autocast_splits_the_buckets(members: str, version: str | None, split: bool) -> None:
    assert buckets_by_parameter(context(members, version=version)) is split
