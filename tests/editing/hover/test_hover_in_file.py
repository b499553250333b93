"""What a hover says about a key in the file at hand."""

from __future__ import annotations

import pytest

from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Facts, Settings
from tests.editing.hover.asking import paragraphs


def here(text: str, settings: Settings | None = None) -> str:
    """The paragraph "In this file", without its label."""
    label = "**In this file.** "
    return next((found.removeprefix(label) for found in paragraphs(text, settings) if found.startswith(label)), "")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            '{"train_micro_batch_|size_per_gpu": 4, "gradient_accumulation_steps": 8}',
            [
                "Effective batch: 4 × 8 × world size.",
                "`train_batch_size` is left out: DeepSpeed takes 4 × 8 × world size.",
            ],
        ),
        (
            '{"train_batch_|size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8}',
            ["The three keys fit a world size of 2: effective batch 64."],
        ),
        (
            '{"train_batch_|size": 65, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8}',
            ["No world size fits the three keys."],
        ),
        (
            '{"bf16": {"enabled": true}, "zero_optimization": {"stage": 2, "reduce_bucket_|size": 2e8}}',
            ["200 M elements: 381 MiB in bf16, the gradient buffer on each GPU."],
        ),
        (
            '{"zero_optimization": {"stage": 2, "reduce_bucket_size": "|auto"}}',
            [
                'DeepSpeed drops "auto", and the default 500000000 applies.',
                "500 M elements: 1.86 GiB in fp32, the gradient buffer on each GPU.",
            ],
        ),
        (
            '{"zero_optimization": {"stage": 3, "prefetch_bu|cket_size": 4e7, "stage3_allgather_sequential": true}}',
            [
                "1 elements: 4 B in fp32 of weights gathered ahead.",
                "Overridden: `zero_optimization.stage3_allgather_sequential` is on and makes it 1 element.",
            ],
        ),
        ('{"zero_optimization": {"stage": 2, "overlap_|comm": null}}', ["Unset: off at stage 2."]),
        ('{"zero_optimization": {"stage": 3, "overlap_|comm": null}}', ["Unset: on at stage 3."]),
        (
            '{"zero_opt|imization": {"stage": 3, "offload_param": {"device": "cpu"}}}',
            ["ZeRO-3, parameters on cpu."],
        ),
        (
            '{"zero_optimization": {"stage": 1, "offload_optimizer": {"de|vice": "nvme"}}}',
            ["The optimizer goes to the CPU: NVMe is for stage 3, and the stage is 1."],
        ),
        (
            (
                '{"zero_optimization": {"stage": 2, "contiguous_gra|dients": false, "offload_optimizer": {"device": '
                '"cpu"}}}'
            ),
            ["On all the same: the optimizer is offloaded."],
        ),
        (
            '{"bf16": {"enab|led": true}, "data_types": {"grad_accum_dtype": "fp32"}}',
            ["Weights in bf16, gradients summed in fp32 and sent in bf16."],
        ),
        (
            '{"fp16": {"enabled": true, "loss_|scale": 0}, "zero_optimization": {"stage": 1}}',
            [
                "Dynamic: it starts at 2^16 = 65536.",
                "This is the default: leaving the key out means the same.",
            ],
        ),
        (
            '{"fp16": {"enabled": true, "loss_|scale": 128}, "zero_optimization": {"stage": 1}}',
            ["Static: 128 for the whole run."],
        ),
        (
            '{"bf16": {"enabled": false}, "bfloat16": {"enab|led": true}}',
            [
                "Not looked at: `bf16` is there as well, and counts.",
                "Weights in fp32, gradients summed in fp32 and sent in fp32.",
            ],
        ),
        (
            '{"scheduler": {"type": "WarmupLR", "params": {"warmup_num_|steps": 10}}, "train_batch_size": 32}',
            [
                "Learning rate: 0 → the optimizer's lr over 10 steps (log), then constant.",
                "10 optimizer steps of 32 samples: 320 samples.",
            ],
        ),
        (
            '{"aio": {"queue_|depth": 16}, "zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}}',
            ["Up to 16 MiB in flight on each rank: 1 MiB × 16 × 1 (block size, queue depth, threads)."],
        ),
        (
            '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "buffer_|count": 5}}}',
            ["At most 18.6 GiB of page-locked host memory on each rank; less where a shard is smaller."],
        ),
        (
            (
                '{"zero_optimization": {"stage": 2, "zenflow": {"update_interval": 4}}, "train_batch_size": 8, '
                '"gradient_accumulation_|steps": 2}'
            ),
            [
                "Effective batch: 8.",
                "`train_micro_batch_size_per_gpu` is left out: DeepSpeed takes 8 / (2 × world size).",
                "ZenFlow replaces the accumulation by its update interval: 4.",
            ],
        ),
    ],
)
def test_a_hover_says_what_the_key_does_in_this_file(text: str, lines: list[str]) -> None:
    assert here(text) == " ".join(lines)


def test_the_consumer_is_part_of_the_file() -> None:
    trainer = Settings(consumer=Consumer.TRANSFORMERS)
    assert here('{"gradient_clip|ping": "auto"}', trainer) == (
        'Transformers Trainer fills "auto" with TrainingArguments.max_grad_norm.'
    )
    assert here('{"gradient_clip|ping": 0.5}', trainer) == (
        'Transformers Trainer stops unless the value agrees with TrainingArguments.max_grad_norm; "auto" takes it from '
        "there."
    )
    assert here('{"gradient_clip|ping": 0.5}') == ""


def test_facts_beside_the_file_count() -> None:
    settings = Settings(facts=Facts(world_size=8, parameters=7_000_000_000))
    assert here('{"zero_optimization": {"sta|ge": 3}}', settings) == (
        "Weights, gradients and Adam states take about 16 GB on each GPU in 16-bit training: 7000000000 parameters on "
        "8 GPUs."
    )
    assert here('{"train_micro_batch_|size_per_gpu": 4}', settings) == (
        "Effective batch: 32. `gradient_accumulation_steps` is left out: DeepSpeed takes 1. `train_batch_size` is left "
        "out: DeepSpeed takes 4 × 1 × 8 = 32."
    )
