from __future__ import annotations

import pytest

from dsmigrate.editing.derived import course
from dsmigrate.knowledge import Consumer

from .contexts import context

AUTO = '"scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto", '
AUTO += '"warmup_num_steps": "auto", "total_num_steps": "auto"}}'


def schedule(kind: str, params: str) -> str:
    return f'"scheduler": {{"type": "{kind}", "params": {{{params}}}}}'


@pytest.mark.parametrize(
    ("members", "text"),
    [
        (
            schedule("WarmupLR", '"warmup_max_lr": 1e-4, "warmup_num_steps": 100'),
            "0 → 0.0001 over 100 steps (log), then constant",
        ),
        (
            schedule("WarmupLR", '"warmup_num_steps": 100')
            + ', "optimizer": {"type": "AdamW", "params": {"lr": 2e-5}}',
            "0 → 2e-05 over 100 steps (log), then constant",
        ),
        (schedule("WarmupLR", ""), "0 → the optimizer's lr over 1000 steps (log), then constant"),
        (
            schedule("WarmupDecayLR", '"warmup_num_steps": 1, "total_num_steps": 500, "warmup_type": "linear"'),
            "0 → 0.001 over 2 steps (linear), then linearly down until step 500",
        ),
        (schedule("WarmupDecayLR", ""), "0 → 0.001 over 1000 steps (log), then linearly down"),
        (
            schedule("WarmupCosineLR", '"total_num_steps": 500, "warmup_num_steps": 10'),
            "up to the optimizer's lr over 10 steps (log), then down along a cosine until step 500",
        ),
        (
            schedule("WarmupLR", '"warmup_min_lr": [0, 1], "warmup_max_lr": 1'),
            "up to 1 over 1000 steps (log), then constant",
        ),
        (schedule("WarmupLR", '"warmup_max_lr": [1, 2]'), ""),
        (schedule("WarmupLR", '"warmup_num_steps": 0'), ""),
        (schedule("WarmupLR", '"warmup_num_steps": []'), ""),
        (schedule("StepLR", '"step_size": 3'), ""),
        (schedule("Nothing", ""), ""),
        ('"scheduler": {"params": 3}', ""),
        ("", ""),
    ],
)
def test_the_course_of_the_rate(members: str, text: str) -> None:
    assert course(context(members)) == text


def test_a_release_with_another_default_peak_climbs_to_it() -> None:
    members = schedule("WarmupLR", '"warmup_num_steps": 100')
    assert course(context(members, version="0.17.1")) == "0 → 0.001 over 100 steps (log), then constant"


def test_what_the_consumer_fills_is_called_auto() -> None:
    found = course(context(AUTO, consumer=Consumer.TRANSFORMERS))
    assert found == "auto → auto over auto steps (log), then linearly down until step auto"
