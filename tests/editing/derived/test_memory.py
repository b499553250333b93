from __future__ import annotations

import pytest

from dsmigrate.editing.derived import Size, size
from dsmigrate.knowledge import Consumer

from .contexts import context

ZERO = "zero_optimization"
BUCKET = f"{ZERO}.reduce_bucket_size"
BF16 = '"bf16": {"enabled": true}, '


def found(
    members: str, path: str = BUCKET, *, version: str | None = None, consumer: Consumer = Consumer.DEEPSPEED
) -> Size:
    """The size of a key's value."""
    here = context(members, version=version, consumer=consumer)
    key = here.known.key(path)
    assert key is not None
    result = size(here, key, here.number(path))
    assert result is not None
    return result


def absent(members: str, path: str = BUCKET) -> bool:
    """Whether a key's value has no size."""
    here = context(members)
    key = here.known.key(path)
    assert key is not None
    return size(here, key, here.number(path)) is None


@pytest.mark.parametrize(
    ("members", "version", "text"),
    [
        (BF16 + '"zero_optimization": {"stage": 2}', None, "0.93 GiB in bf16"),
        (BF16 + '"zero_optimization": {"stage": 2, "overlap_comm": true}', None, "2 × 0.93 GiB in bf16"),
        (BF16 + '"zero_optimization": {"stage": 3}', None, "0.93 GiB in bf16"),
        (BF16 + '"communication_data_type": "fp32", "zero_optimization": {"stage": 3}', None, "1.86 GiB in fp32"),
        (BF16 + '"communication_data_type": "fp32", "zero_optimization": {"stage": 2}', None, "0.93 GiB in bf16"),
        (BF16 + '"communication_data_type": "fp32", "zero_optimization": {"stage": 3}', "0.17.1", "0.93 GiB in bf16"),
        ('"zero_optimization": {"stage": 1}', None, "1.86 GiB in fp32"),
        (
            '"fp16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}, "zero_optimization": {"stage": 1}',
            None,
            "1.86 GiB in fp32",
        ),
        (
            '"fp16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}, "zero_optimization": {"stage": 1}',
            "0.19.7",
            "0.93 GiB in fp16",
        ),
        (
            BF16 + '"zero_optimization": {"stage": 2, "contiguous_gradients": false, '
            '"offload_optimizer": {"device": "cpu"}}',
            None,
            "0.93 GiB in bf16",
        ),
    ],
)
def test_the_gradient_bucket_has_the_format_that_the_release_gives_it(
    members: str, version: str | None, text: str
) -> None:
    assert found(members, version=version).text == text


@pytest.mark.parametrize(
    "members",
    [
        BF16 + '"zero_optimization": {"stage": 0}',
        BF16 + '"zero_optimization": {"stage": 2, "contiguous_gradients": false}',
        '"torch_autocast": {"enabled": true}, "zero_optimization": {"stage": 2}',  # a bucket for each format
        BF16 + '"data_types": {"grad_accum_dtype": "fp32"}, "zero_optimization": {"stage": 1}',  # BF16_Optimizer
        '"zero_optimization": {"stage": 2, "reduce_bucket_size": -1}',
        '"zero_optimization": {"stage": 2, "reduce_bucket_size": []}',
    ],
)
def test_without_a_bucket_there_is_no_size(members: str) -> None:
    assert absent(members)


def test_a_format_that_is_open_has_two_sizes() -> None:
    size = found('"zero_optimization": {"stage": 2}', consumer=Consumer.TRANSFORMERS)
    assert (size.text, size.short) == ("0.93 GiB in 16 bit, 1.86 GiB in fp32", "0.93 GiB in 16 bit")


@pytest.mark.parametrize(
    ("members", "path", "sentence"),
    [
        (
            '"zero_optimization": {"stage": 2, "overlap_comm": true}',
            BUCKET,
            (
                "500 M elements: 2 × 1.86 GiB in fp32, the gradient buffer on each GPU, two because "
                "`zero_optimization.overlap_comm` is on."
            ),
        ),
        (
            BF16 + '"zero_optimization": {"stage": 3}',
            f"{ZERO}.stage3_prefetch_bucket_size",
            "50 M elements: 95.4 MiB in bf16 of weights gathered ahead.",
        ),
        (
            BF16 + '"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}',
            f"{ZERO}.offload_param.buffer_size",
            "100 M elements: 5 × 191 MiB in bf16 of page-locked host memory on each rank.",
        ),
        (
            BF16 + '"zero_optimization": {"stage": 3}',
            f"{ZERO}.sub_group_size",
            "1 G elements: 3.73 GiB in fp32 at most for the gradients of one sub-group in the step.",
        ),
    ],
)
def test_the_sentence_says_what_the_bytes_are(members: str, path: str, sentence: str) -> None:
    assert found(members, path).sentence == sentence


def test_a_number_that_means_no_limit_has_no_size() -> None:
    assert absent('"zero_optimization": {"stage": 3}', f"{ZERO}.stage3_model_persistence_threshold")
