"""One side: what the file gives, by canonical path, and what DeepSpeed makes of it."""

from __future__ import annotations

import pytest

from dsmigrate.diff.meaning import converted, same
from dsmigrate.diff.side import Side
from dsmigrate.document import render_path
from dsmigrate.knowledge import MISSING, Consumer, knowledge
from dsmigrate.rules.context import UNKNOWN

from .examples import view


def side(
    text: str, *, consumer: Consumer = Consumer.DEEPSPEED, world: int | None = None, version: str | None = None
) -> Side:
    return Side(view(text, consumer=consumer, world_size=world, version=version), "side")


@pytest.mark.parametrize(
    ("text", "path", "written"),
    [
        ('{"bfloat16": {"enabled": true}}', "bf16.enabled", "bfloat16.enabled"),
        ('{"bfloat16": {"enabled": true}, "bf16": {}}', "bfloat16.enabled", "bfloat16.enabled"),
        ('{"zero_optimization": {"prefetch_bucket_size": 1}}', "zero_optimization.stage3_prefetch_bucket_size", None),
        ('{"zero_optimization": {"cpu_offload": true}}', "zero_optimization.offload_optimizer.device", None),
        ('{"zero_optimization": {"cpu_offload": false}}', "zero_optimization.cpu_offload", None),
        ('{"zero_optimization": true}', "zero_optimization.stage", "zero_optimization"),
        ('{"my": {"a": 1}}', "my", "my"),
        ('{"fp16": {"my": 1}}', "fp16.my", "fp16.my"),
        ('{"optimizer": {"params": {"lr": 1}}}', "optimizer.params.lr", None),
        ('{"fp16": {}}', "fp16", "fp16"),
        ('{"zero_optimization": {"zenflow": {"topk_ratio": 0.1}}}', "zero_optimization.zenflow", None),
    ],
)
def test_leaves_go_by_their_canonical_path(text: str, path: str, written: str | None) -> None:
    given = side(text).given
    assert path in given
    spot = given[path][1]
    assert text[spot.start : spot.end].startswith('"')
    if written is not None:
        assert render_path(spot.path) == written


@pytest.mark.parametrize(
    ("text", "path", "means"),
    [
        ("{}", "gradient_clipping", 1.0),
        ('{"zero_optimization": {"stage": "3"}}', "zero_optimization.stage", 3),
        ('{"zero_optimization": {"stage": 3}}', "zero_optimization.overlap_comm", True),
        ('{"zero_optimization": {"stage": 2}}', "zero_optimization.overlap_comm", False),
        ('{"zero_optimization": {"stage": 3, "overlap_comm": "no"}}', "zero_optimization.overlap_comm", False),
        ('{"zero_optimization": true}', "zero_optimization.stage", 1),
        ('{"zero_optimization": {"cpu_offload": true}}', "zero_optimization.offload_optimizer.device", "cpu"),
        ('{"zero_optimization": {"cpu_offload": false}}', "zero_optimization.offload_optimizer.device", "none"),
        ('{"communication_data_type": "FP16"}', "communication_data_type", "fp16"),
        ('{"torch_autocast": {"dtype": "torch.bfloat16"}}', "torch_autocast.dtype", "bf16"),
        ('{"checkpoint": {"tag_validation": "ignore"}}', "checkpoint.tag_validation", "IGNORE"),
        ('{"flops_profiler": {"enabled": true}}', "wall_clock_breakdown", True),
        ('{"optimizer": {"type": "adamw"}}', "optimizer.type", "AdamW"),
        ('{"optimizer": {"type": "AdamW"}}', "optimizer.params.weight_decay", 0.0),
        ('{"optimizer": {"type": "AdamW", "params": {"torch_adam": true}}}', "optimizer.params.weight_decay", 0.01),
        ('{"optimizer": {"params": {"lr": 1}}}', "optimizer.params.lr", 1),
        ('{"my": 1}', "my", MISSING),
        ('{"fp16": {"my": 1}}', "fp16.my", MISSING),
        (
            '{"optimizer": {"type": "SGD", "params": {"lr": 0.5}}, "scheduler": {"type": "WarmupLR", "params": {}}}',
            "scheduler.params.warmup_max_lr",
            0.5,
        ),
        ('{"sequence_parallel_size": 1}', "sequence_parallel_size", MISSING),
    ],
)
def test_values_are_what_deepspeed_takes(text: str, path: str, means: object) -> None:
    value = side(text).value(path)
    assert same(value, means), value


@pytest.mark.parametrize(
    ("text", "path", "means"),
    [
        ('{"my": 1}', "my", MISSING),
        ('{"fp16": {"my": 1}}', "fp16.my", 1),
        ('{"amp": {"enabled": false}}', "amp.enabled", False),
        ('{"optimizer": {"params": {"lr": 1}}}', "optimizer.params.lr", MISSING),
        ('{"optimizer": {"type": "SGD", "params": {"my": 1}}}', "optimizer.params.my", 1),
        ('{"fp16": {}}', "fp16", MISSING),
        ('{"zero_optimization": {"zenflow": {}}}', "zero_optimization.zenflow", {}),
        ('{"zero_optimization": {"offload_param": {}}}', "zero_optimization.offload_param", MISSING),
    ],
)
def test_what_counts_of_a_leaf(text: str, path: str, means: object) -> None:
    assert side(text).meant(path) == means


def test_batch_keys_are_computed_when_the_world_is_known() -> None:
    text = '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2}'
    assert side(text, world=4).value("gradient_accumulation_steps") == 4
    assert side(text).value("gradient_accumulation_steps") is UNKNOWN
    assert side(text).number("gradient_accumulation_steps") is None


def test_auto_is_unknown_where_it_is_filled_and_the_default_where_it_is_dropped() -> None:
    text = '{"gradient_clipping": "auto", "zero_optimization": {"stage": "auto"}}'
    assert side(text, consumer=Consumer.TRANSFORMERS).value("gradient_clipping") is UNKNOWN
    assert side(text, consumer=Consumer.TRANSFORMERS).fills("gradient_clipping")
    assert side(text).value("zero_optimization.stage") == 0
    assert not side(text).fills("zero_optimization.stage")


def test_a_key_goes_by_the_name_that_the_other_release_has() -> None:
    old = view('{"aio": {"thread_count": 4}}', version="0.16.0")
    moved = Side(old, "old", knowledge("0.19.8"))
    assert list(moved.given) == ["aio.intra_op_parallelism"]
    assert moved.value("aio.intra_op_parallelism") == 4
    assert list(Side(old, "old").given) == ["aio.thread_count"]


@pytest.mark.parametrize(
    ("path", "value", "kept"),
    [
        ("zero_optimization.reduce_bucket_size", "500", 500),
        ("zero_optimization.reduce_bucket_size", "5e2", "5e2"),
        ("fp16.enabled", "yes", True),
        ("fp16.enabled", 2, 2),
        ("fp16.loss_scale", "1e2", 100.0),
        ("zero_optimization.offload_param.nvme_path", "/a//b/", "/a/b"),
        ("dump_state", "yes", "yes"),
        ("steps_per_print", "5", "5"),
    ],
)
def test_values_are_converted_where_deepspeed_converts(path: str, value: object, kept: object) -> None:
    assert converted(knowledge().key(path), value) == kept


def test_equal_numbers_are_one_value_and_unknown_is_like_nothing_else() -> None:
    assert same(1, 1.0)
    assert same([1, {"a": 2.0}], [1.0, {"a": 2}])
    assert not same([1], [1, 2])
    assert same(UNKNOWN, UNKNOWN)
    assert not same(UNKNOWN, "auto")
    assert not same(MISSING, None)


@pytest.mark.parametrize("value", ["true", "false", "null"])
def test_a_switch_that_deepspeed_moves_holds_nothing_itself(value: str) -> None:
    text = f'{{"zero_optimization": {{"cpu_offload": {value}}}}}'
    assert side(text).meant("zero_optimization.cpu_offload") is MISSING
