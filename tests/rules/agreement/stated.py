"""The rules' own examples as cases: what DeepSpeed gets of each after its fix, the consumer in between included."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Example, every_rule
from tests.rules.examples import marked
from tests.schemas.judge import AUTO, filled

from .case import Case, Config
from .corpus import refused_before
from .judging import Answer, judge

TOTAL = "train_batch_size"


def stated() -> Iterator[tuple[Example, Case]]:
    """Yield every example with the case of its text after the fix, named by code and number."""
    for rule in every_rule():
        for number, example in enumerate(rule.examples):
            text = marked(example.config).text if example.fixed is None else example.fixed
            yield example, case(f"{rule.code}-{number}", text, example)


def case(name: str, text: str, example: Example) -> Case:
    """Return what is asked of the judge for a text that an example is about."""
    own = Case(name, None, example.facts.world_size, (), text, example.consumer, example.version)
    if example.consumer is Consumer.DEEPSPEED:
        return own
    try:
        value = json.loads(text)
    except ValueError:
        return own  # which the consumer refuses
    return replace(own, config=handed_over(value) if isinstance(value, dict) else None)


def handed_over(config: Config) -> Config:
    """Return the config that Transformers and Accelerate hand to DeepSpeed, for a script that asks for full precision.

    Their plugin replaces "auto", writes some keys whatever the file says, and adds a few that it lacks
    (accelerate/utils/dataclasses.py:DeepSpeedPlugin); ``tests/e2e/test_consumers.py`` compares each with the packages.
    """
    done = filled(config)
    if config.get(TOTAL) == AUTO and "train_micro_batch_size_per_gpu" not in config:
        done[TOTAL] = 1
    done["steps_per_print"] = math.inf
    done.setdefault("gradient_accumulation_steps", 1)
    for mode in ("fp16", "bf16"):
        done.setdefault(mode, {"enabled": False})
    if "optimizer" not in done:
        done["zero_allow_untested_optimizer"] = True
    return done


def answers(asked: Sequence[Case]) -> list[Answer]:
    """Return what the consumer and then DeepSpeed say of each case."""
    return [
        Answer("config", error) if (error := refused(one)) else answer
        for one, answer in zip(asked, judge(asked), strict=True)
    ]


def refused(one: Case) -> str:
    """Return why a consumer stops before DeepSpeed sees the config; "" when it goes on."""
    config = one.config or {}
    tuned = isinstance(config.get("autotuning"), dict) and config["autotuning"].get("enabled")
    if one.consumer is not Consumer.DEEPSPEED and not tuned and not isinstance(config.get("zero_optimization"), dict):
        return "ValueError: Please specify the ZeRO optimization config in the DeepSpeed config."
    return refused_before(one)
