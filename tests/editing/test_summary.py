from __future__ import annotations

import pytest

from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.editing.summary import details, summary
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Settings

from .derived.contexts import view

BATCH = '"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8'
ZERO_3 = '"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}'


@pytest.mark.parametrize(
    ("members", "world", "text"),
    [
        (
            f'{BATCH}, {ZERO_3}, "bf16": {{"enabled": true}}',
            None,
            "ZeRO-3 · bf16 · cpu · batch 4 × 8 × world size",
        ),
        (f"{BATCH}, {ZERO_3}", 2, "ZeRO-3 · fp32 · cpu · batch 64"),
        ('"train_batch_size": 64, "fp16": {"enabled": true}', None, "ZeRO off · fp16 · batch 64"),
        (
            (
                '"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme"}, '
                '"offload_param": {"device": "cpu"}}'
            ),
            None,
            "ZeRO-3 · fp32 · nvme + cpu",
        ),
        (
            '"torch_autocast": {"enabled": true, "dtype": "bf16"}, "train_batch_size": 3',
            None,
            "ZeRO off · bf16 autocast · batch 3",
        ),
        (
            '"train_batch_size": 65, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8',
            None,
            "ZeRO off · fp32 · batch keys do not fit",
        ),
        (
            f'{BATCH}, "zero_optimization": {{"stage": 2, "zenflow": {{}}}}',
            None,
            "ZeRO-2 · fp32 · batch by ZenFlow",
        ),
        ('"zero_optimization": {"stage": []}', None, "ZeRO · fp32"),
        ("", None, "ZeRO off · fp32"),
    ],
)
def test_a_file_in_one_line(members: str, world: int | None, text: str) -> None:
    assert summary(view(members, world=world)) == text


def test_what_the_trainer_fills_is_left_out_of_the_line_and_told_in_detail() -> None:
    members = '"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"'
    found = view(members, consumer=Consumer.TRANSFORMERS)
    assert summary(found) == "ZeRO off"
    assert details(found) == (
        ("ZeRO", "ZeRO off"),
        ("Precision", "set by Transformers Trainer"),
        ("Effective batch", "micro-batch × accumulation × world size"),
    )


def test_details_say_what_goes_where() -> None:
    zero = (
        '"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme"}, "offload_param": {"device": "cpu"}}'
    )
    assert details(view(f'{BATCH}, {zero}, "bf16": {{"enabled": true}}')) == (
        ("ZeRO", "ZeRO-3"),
        ("Precision", "bf16"),
        ("Offloaded", "optimizer on nvme, parameters on cpu"),
        ("Effective batch", "4 × 8 × world size"),
    )


def test_elastic_batches_are_computed_elsewhere() -> None:
    found = summary(view('"train_batch_size": 4, "elasticity": {"enabled": true}', version="0.18.0"))
    assert found == "ZeRO off · fp32 · batch by elasticity"


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "zero_optimization", '{"zero_optimization": {"stage": 3'])
def test_any_text_has_a_summary(text: str) -> None:
    assert summary(View(parse(text), Settings())).startswith("ZeRO")
