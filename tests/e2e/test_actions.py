"""What the editor's actions make of configs, judged by the real DeepSpeed.

What was accepted is accepted afterwards; taking out what equals its default leaves DeepSpeedConfig as it was. Configs
are generated; ``DSMIGRATE_CORPUS`` names a folder of real ones that are judged as well.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.checking.evidence import consumer_for
from dsmigrate.document import Document, Object, apply, parse
from dsmigrate.editing import View
from dsmigrate.editing.actions import Action, Outcome, actions, outcome, upgrade
from dsmigrate.editing.actions.judging import errors
from dsmigrate.knowledge import Consumer, knowledge
from dsmigrate.rules import Facts, Settings
from tests.rules.agreement.case import Case
from tests.rules.agreement.judging import judge
from tests.rules.agreement.valid import valid
from tests.schemas.judge import filled

from . import judging

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e]

CONFIGS = 40
STATES = 300
UPGRADES = 25
OLDER = ("0.10.3", "0.14.5", "0.16.9", "0.18.9")
JUDGED = frozenset({"stage", "precision", "write-default", "remove-defaults", "fix-all"})
FITTING = {"accepted", "unjudged"}

TRAINER = {
    "ZeRO 2": """{
    "bf16": {"enabled": "auto"},
    "optimizer": {
        "type": "AdamW",
        "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}
    },
    "scheduler": {
        "type": "WarmupLR",
        "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto"}
    },
    "zero_optimization": {
        "stage": 2,
        "offload_optimizer": {"device": "auto"},
        "overlap_comm": true,
        "reduce_bucket_size": "auto"
    },
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto"
}
""",
    "ZeRO 3": """{
    "fp16": {"enabled": "auto", "loss_scale": 0, "initial_scale_power": 16},
    "zero_optimization": {
        "stage": "auto",
        "offload_param": {"device": "auto", "nvme_path": "auto", "pin_memory": true},
        "sub_group_size": 1e9,
        "stage3_prefetch_bucket_size": "auto",
        "stage3_param_persistence_threshold": "auto",
        "stage3_gather_16bit_weights_on_model_save": "auto"
    },
    "steps_per_print": "auto",
    "train_micro_batch_size_per_gpu": "auto"
}
""",
}


@dataclass(frozen=True, slots=True)
class Try:
    """A text before and after an action, the action None for the text as it was."""

    name: str
    action: Action | None
    before: str
    after: str
    case: Case


def generated(count: int, seed: str, version: str | None = None) -> Iterator[tuple[str, str, int]]:
    """Yield name, text and number of processes of configs that are meant to be valid."""
    for number in range(count):
        chance = random.Random(f"{seed}/{number}")  # noqa: S311 - repeatable on purpose
        config, world = valid(chance, knowledge(version))
        yield f"{seed}/{number}", json.dumps(config, indent=2), world


def config(document: Document, consumer: Consumer) -> dict[str, Any]:
    """Return what DeepSpeed gets of a config: with "auto" filled by its consumer."""
    value = document.value()
    assert isinstance(value, dict)
    return value if consumer is Consumer.DEEPSPEED else filled(value)


def carried_out(view: View, names: frozenset[str]) -> Iterator[tuple[Action, Outcome]]:
    """Yield the actions of a view, each once, that change it."""
    seen = set()
    for _, member, _ in view.document.walk():
        offset = 0 if member is None else member.start
        for action in actions(view, offset, offset):
            if action.data[0] in names and action.data not in seen and not action.disabled:
                seen.add(action.data)
                done = outcome(view, action.data)
                if done.edits:
                    yield action, done


def tries(name: str, view: View, world: int | None, names: frozenset[str] = JUDGED) -> Iterator[Try]:
    """Yield a config as it is, and after each of its actions."""
    text, consumer = view.text, view.consumer
    yield Try(name, None, text, text, Case(name, config(view.document, consumer), world))
    for action, done in carried_out(view, names):
        after = apply(text, done.edits)
        yield Try(name, action, text, after, Case(f"{name}: {action.title}", config(parse(after), consumer), world))


def judged(found: list[Try]) -> tuple[Counter[str], list[str]]:
    """Return how many results of each action are accepted, of configs that were, and what became of the others."""
    answers = judge([one.case for one in found])
    fine = {one.name for one, answer in zip(found, answers, strict=True) if not one.action and not answer.error}
    counts: Counter[str] = Counter()
    wrong = []
    for one, answer in zip(found, answers, strict=True):
        if one.action is None or one.name not in fine:
            continue
        counts[str(one.action.data[0])] += answer.verdict == "accepted"
        if answer.verdict not in FITTING:
            wrong.append(f"{one.case.name}: {answer.verdict}: {answer.error}\n{one.before}\n{one.after}")
    return counts, wrong


def test_what_was_accepted_is_accepted_afterwards() -> None:
    found: list[Try] = []
    for name, text, world in generated(CONFIGS, "actions"):
        found += tries(name, View(parse(text), Settings(facts=Facts(world_size=world))), world)
    counts, wrong = judged(found)
    print(counts)
    assert wrong == []
    assert {name: count for name, count in counts.items() if count < 5} == {}
    assert counts.keys() == JUDGED


def test_real_configs_that_were_accepted_are_accepted_afterwards() -> None:
    folder = os.environ.get("DSMIGRATE_CORPUS")
    if folder is None:
        pytest.skip("DSMIGRATE_CORPUS names no folder of real configs")
    found: list[Try] = []
    for path in sorted(Path(folder).rglob("*"))[::4]:
        document = parse(path.read_text(encoding="utf-8-sig", errors="replace")) if path.is_file() else parse("")
        if isinstance(document.root, Object) and document.is_readable:
            consumer = Consumer(consumer_for(document, None).value)
            found += tries(path.name, View(document, Settings(consumer=consumer)), None)
    counts, wrong = judged(found)
    print(counts)
    assert wrong == []
    assert counts["stage"] > 20


def test_a_config_without_what_equals_its_default_is_the_same_for_deepspeed() -> None:
    pairs = []
    for _, text, _ in generated(STATES, "defaults"):
        done = outcome(View(parse(text)), ("remove-defaults", ""))
        if done.edits:
            pairs.append((text, apply(text, done.edits)))
    answers = states([alone(text) for pair in pairs for text in pair])
    different = [
        f"{before}\n{after}"
        for (before, after), old, new in zip(pairs, answers[::2], answers[1::2], strict=True)
        if old is not None and old != new
    ]
    same = sum(answer is not None for answer in answers[::2])
    print("configs compared:", same)
    assert different == []
    assert same > STATES / 3


def states(configs: list[dict[str, Any]]) -> list[object]:
    """Return what DeepSpeedConfig holds for each config, where a whole number is a float too; None for an error."""
    answers = judging.ask("fact_judge.py", configs, "--state")
    return [json.loads(answer["state"]) if "state" in answer else None for answer in answers]


def alone(text: str) -> dict[str, Any]:
    """Return a config for one process; the batch size of every one is 1."""
    names = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "sequence_parallel_size")
    whole = config(parse(text), Consumer.DEEPSPEED)
    return {name: value for name, value in whole.items() if name not in names} | {"train_batch_size": 1}


@pytest.mark.parametrize("name", TRAINER)
def test_a_config_of_the_trainer_without_auto_is_one_for_deepspeed(name: str) -> None:
    view = View(parse(TRAINER[name]), Settings(consumer=Consumer.TRANSFORMERS))
    done = outcome(view, ("resolve-auto", ""))
    after = apply(view.text, done.edits)
    assert '"auto"' not in after
    (answer,) = judge([Case(name, config(parse(after), Consumer.DEEPSPEED))])
    assert answer.verdict == "accepted", answer.error


@pytest.mark.parametrize("version", OLDER)
def test_an_upgraded_config_loads_where_nothing_is_left(version: str) -> None:
    cases, named = [], 0
    for name, text, world in generated(UPGRADES, f"upgrade {version}", version):
        document = parse(text)
        if errors(Settings(version=version, facts=Facts(world_size=world)), document):
            continue
        done = upgrade(document, version, knowledge().version, facts=Facts(world_size=world))
        if any(left.startswith("DS") for left in done.left):
            named += 1
            continue
        cases.append(Case(name, config(parse(apply(text, done.edits)), Consumer.DEEPSPEED), world))
    answers = judge(cases, deep=False)
    refused = {case.name: answer.error for case, answer in zip(cases, answers, strict=True) if answer.refused}
    print("loaded:", len(cases) - len(refused), "named:", named)
    assert refused == {}
    assert len(cases) > named
