"""Training agrees with the diff: losses stay where it says that the numbers stay, and change where it says they do.

A small model is trained under both configs of each pair, by the real DeepSpeed on two CPU processes. What the losses
must do is taken from what the diff says, never written down here.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.diff import Effect, Result, Severity, compare_views
from dsmigrate.document import parse
from dsmigrate.editing.view import View
from dsmigrate.rules import Facts, Settings

from .cases import Case
from .harness import RANKS, Lab
from .launching import HERE

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("training")]

SCRIPT = "diff_training_script.py"
NOISE = 1e-6
"""Largest relative difference of a loss where the numbers stay: fp32 sums in another order, over eight steps."""
A_LITTLE = 1e-5
"""The same where the diff says that numbers change a little; what changes training moves a loss farther than this."""
A_LITTLE_IN_16_BIT = 2.0**-8
"""The same where both sides train in bf16, which has 8 significant bits."""

Config = dict[str, Any]
REMOVED = object()
ADAM: Config = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_clipping": 0,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-2, "weight_decay": 0.5, "torch_adam": True}},
}
SGD: Config = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_clipping": 0,
    "optimizer": {"type": "SGD", "params": {"lr": 1e-2}},
    "zero_allow_untested_optimizer": True,
}
SCHEDULE: Config = {
    "type": "WarmupDecayLR",
    "params": {"warmup_max_lr": 1e-2, "warmup_num_steps": 4, "total_num_steps": 8},
}
BF16: Config = {"bf16.enabled": True, "zero_optimization.stage": 2}
TUNED: Config = {
    "zero_optimization.reduce_bucket_size": 1000,
    "zero_optimization.overlap_comm": True,
    "zero_optimization.contiguous_gradients": False,
    "zero_optimization.reduce_scatter": False,
}

PAIRS: Mapping[str, tuple[Config, Config, Config]] = {
    "stage 0 to 1": (ADAM, {}, {"zero_optimization.stage": 1}),
    "stage 0 to 2 with accumulation": (
        ADAM,
        {"gradient_accumulation_steps": 2},
        {"gradient_accumulation_steps": 2, "zero_optimization.stage": 2},
    ),
    "stage 1 to 3": (
        SGD,
        {"zero_optimization.stage": 1},
        {"zero_optimization.stage": 3, "zero_optimization.stage3_param_persistence_threshold": 0},
    ),
    "buckets and overlap": (ADAM, {"zero_optimization.stage": 2}, {"zero_optimization.stage": 2, **TUNED}),
    "offload": (ADAM, {"zero_optimization.stage": 2}, {"zero_optimization": {"stage": 2, "cpu_offload": True}}),
    "spelling, defaults, ignored keys": (
        ADAM,
        {},
        {"gradient_accumulation_steps": 1.0, "optimiser": {}, "zero_optimization": {"stage": "0"}, "_comment": "no"},
    ),
    "prints and timers": (ADAM, {}, {"steps_per_print": 2, "wall_clock_breakdown": True}),
    "Adam is AdamW": (ADAM, {}, {"optimizer.type": "Adam"}),
    "Adam is not AdamW with adam_w_mode false": (
        ADAM,
        {},
        {"optimizer.type": "Adam", "optimizer.params.adam_w_mode": False},
    ),
    "weight decay": (ADAM, {}, {"optimizer.params.weight_decay": 0.1}),
    "default decay of torch's AdamW": (
        ADAM,
        {"optimizer.params.weight_decay": 0.01},
        {"optimizer.params.weight_decay": REMOVED},
    ),
    "betas": (ADAM, {}, {"optimizer.params.betas": [0.9, 0.95]}),
    "eps": (ADAM, {}, {"optimizer.params.eps": 1e-2}),
    "learning rate": (ADAM, {}, {"optimizer.params.lr": 2e-2}),
    "learning rate below a schedule with its own": (
        ADAM,
        {"scheduler": SCHEDULE},
        {"scheduler": SCHEDULE, "optimizer.params.lr": 2e-2},
    ),
    "peak of a schedule": (
        ADAM,
        {"scheduler": SCHEDULE},
        {"scheduler": SCHEDULE, "scheduler.params.warmup_max_lr": 2e-2},
    ),
    "a warm-up of one step is one of two": (
        ADAM,
        {"scheduler": SCHEDULE, "scheduler.params.warmup_num_steps": 1},
        {"scheduler": SCHEDULE, "scheduler.params.warmup_num_steps": 2},
    ),
    "a schedule": (ADAM, {}, {"scheduler": SCHEDULE}),
    "optimizer": (SGD, {}, {"optimizer.type": "Adagrad"}),
    "momentum": (SGD, {}, {"optimizer.params.momentum": 0.9}),
    "implementation of SGD": (SGD, {}, {"optimizer.params.foreach": True}),
    "an untested optimizer that nobody refuses": (SGD, {}, {"zero_allow_untested_optimizer": False}),
    "clipping that bites": (SGD, {}, {"gradient_clipping": 0.5}),
    "clipping by default": (SGD, {"gradient_clipping": 1.0}, {"gradient_clipping": REMOVED}),
    "effective batch": (SGD, {}, {"gradient_accumulation_steps": 2}),
    "the same batch in smaller pieces": (
        SGD,
        {},
        {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2},
    ),
    "the same batch by another key": (SGD, {}, {"train_micro_batch_size_per_gpu": REMOVED, "train_batch_size": 8}),
    "who counts micro-steps": (
        SGD,
        {"gradient_accumulation_steps": 2},
        {"gradient_accumulation_steps": 2, "managed_gradient_accumulation": False},
    ),
    "gradients summed over ranks": (SGD, {}, {"gradient_allreduce_op": "sum"}),
    "divided before the sum": (SGD, {}, {"prescale_gradients": True}),
    "prescaling that ZeRO 1 ignores": (
        SGD,
        {"zero_optimization.stage": 1},
        {"zero_optimization.stage": 1, "prescale_gradients": True},
    ),
    "bf16": (ADAM, {"zero_optimization.stage": 2}, BF16),
    "bf16 with ZeRO": (ADAM, {"bf16.enabled": True}, {"bf16.enabled": True, "zero_optimization.stage": 1}),
    "bf16 at stage 1 and 2": (
        SGD,
        {**BF16, "gradient_accumulation_steps": 4, "zero_optimization.stage": 1},
        {**BF16, "gradient_accumulation_steps": 4},
    ),
    "16-bit masters and moments": (
        ADAM,
        BF16,
        {**BF16, "bf16.bf16_master_weights_and_grads": True, "bf16.bf16_optimizer_states": True},
    ),
    "fp32 gradient sums": (
        SGD,
        {**BF16, "gradient_accumulation_steps": 4},
        {**BF16, "gradient_accumulation_steps": 4, "data_types.grad_accum_dtype": "fp32"},
    ),
    "gradient sums as they are": (SGD, BF16, {**BF16, "data_types.grad_accum_dtype": "bf16"}),
    "communication in 16 bit": (SGD, {}, {"communication_data_type": "bf16"}),
    "communication as it is": (SGD, {}, {"communication_data_type": "fp32"}),
    "autocast": (ADAM, {}, {"torch_autocast.enabled": True, "torch_autocast.dtype": "bfloat16"}),
    "checkpoint section": (ADAM, {}, {"checkpoint.tag_validation": "Fail", "activation_checkpointing.profile": True}),
}


def edited(base: Config, edits: Config) -> Config:
    """Return a config with values set at dotted paths; REMOVED takes a key out."""
    config = copy.deepcopy(base)
    for path, value in edits.items():
        *sections, name = path.split(".")
        place = config
        for section in sections:
            place = place.setdefault(section, {})
        if value is REMOVED:
            place.pop(name)
        else:
            place[name] = copy.deepcopy(value)
    return config


def diff(old: Config, new: Config) -> Result:
    views = [View(parse(json.dumps(config)), Settings(facts=Facts(world_size=RANKS))) for config in (old, new)]
    return compare_views(*views)


def claimed(result: Result) -> str:
    """Return what the diff says of the numbers: "same", "nearly" or "other"."""
    numbers = [said.severity for said in result.explained if Effect.NUMERICS in said.effects]
    if not numbers:
        return "same"
    return "nearly" if set(numbers) <= {Severity.INFO} else "other"


@pytest.fixture(scope="module")
def trained() -> dict[str, list[float]]:
    """The losses of every config that was trained, by its text."""
    return {}


def losses(lab: Lab, config: Config, folder: Path, trained: dict[str, list[float]]) -> list[float]:
    """Return the loss of every optimizer step under a config."""
    text = json.dumps(config)
    if text not in trained:
        folder.mkdir()
        shutil.copy(HERE / SCRIPT, folder)
        (folder / "ds_config.json").write_text(text)
        outcome = lab.launch(Case("diff", SCRIPT), folder, ["ds_config.json"], "deepspeed")
        found = [line for line in outcome.texts[0].splitlines() if line.startswith("losses ")]
        assert outcome.succeeded, outcome.excerpt()
        assert len(found) == 1, outcome.excerpt()
        trained[text] = json.loads(found[0].removeprefix("losses "))
    return trained[text]


@pytest.mark.parametrize("name", PAIRS)
def test_losses_do_what_the_diff_says(lab: Lab, name: str, tmp_path: Path, trained: dict[str, list[float]]) -> None:
    base, *edits = PAIRS[name]
    old, new = (edited(base, one) for one in edits)
    result = diff(old, new)
    said = "\n".join([result.verdict, *(f"{one.code} {one.severity.value}: {one.message}" for one in result.explained)])
    before, after = (losses(lab, config, tmp_path / side, trained) for config, side in ((old, "old"), (new, "new")))
    apart = max(abs(one - other) / abs(one) for one, other in zip(before, after, strict=True))
    words = f"losses are {apart:.1e} apart, and the diff says:\n{said}"
    if result.worst is Severity.NONE:
        assert before == after, words
    elif claimed(result) == "same":
        assert apart <= NOISE, words
    elif claimed(result) == "nearly":
        both = old.get("bf16") and new.get("bf16")
        assert apart <= (A_LITTLE_IN_16_BIT if both else A_LITTLE), words
    else:
        assert apart > A_LITTLE, words


def test_the_pairs_make_every_kind_of_claim() -> None:
    claims = [claimed(diff(*(edited(base, one) for one in edits))) for base, *edits in PAIRS.values()]
    assert claims.count("same") >= 10
    assert claims.count("other") >= 10
    assert claims.count("nearly") >= 3
