from __future__ import annotations

import pytest

from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.editing.actions import actions
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Settings
from tests.editing.actions.offering import carried_out, changed, offered

NAME = "resolve-auto"
TRAINER = Settings(consumer=Consumer.TRANSFORMERS)
WHOLE = 'Replace "auto" by values for plain DeepSpeed'
TEXT = """{
  "train_batch_size": "auto",
  "train_micro_batch_size_per_gpu": "auto",
  "gradient_accumulation_steps": "auto",
  "gradient_clipping": "au|to",
  "bf16": {"enabled": "auto"},
  "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
  "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto"}},
  "zero_optimization": {
    "stage": "auto",
    "offload_optimizer": {"device": "auto", "nvme_path": "auto"},
    "reduce_bucket_size": "auto"
  }
}
"""
RESOLVED = """{
  "train_micro_batch_size_per_gpu": 8,
  "gradient_accumulation_steps": 1,
  "gradient_clipping": 1.0,
  "bf16": {"enabled": false},
  "optimizer": {"type": "AdamW", "params": {"lr": 5e-05, "betas": [0.9, 0.999], "eps": 1e-08, "weight_decay": 0.0}},
  "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 0, "warmup_max_lr": 5e-05}},
  "zero_optimization": {
    "stage": 2,
    "offload_optimizer": {"device": "none"}
  }
}
"""


def test_each_auto_becomes_what_the_trainer_takes_by_default() -> None:
    assert changed(TEXT, WHOLE, TRAINER) == RESOLVED
    assert carried_out(TEXT, WHOLE, TRAINER).left == (
        "The arguments of the script decided on the precision: switch on `bf16` or `fp16` if it trains in one.",
    )


def test_the_reason_for_each_is_told() -> None:
    done = carried_out(TEXT, WHOLE, TRAINER).done
    assert done[0] == "`train_batch_size` is left out: DeepSpeed computes it from the micro-batch."
    assert done[3] == (
        "`gradient_clipping` is 1.0: the Trainer takes TrainingArguments.max_grad_norm, here at its default."
    )
    assert done[-1] == (
        "`zero_optimization.reduce_bucket_size` is left out: the Trainer takes hidden_size squared; here the default "
        "holds, 500000000."
    )


def test_one_key_alone_can_be_resolved() -> None:
    assert list(offered(TEXT, NAME, TRAINER)) == ["Write `1.0` for `gradient_clipping`", WHOLE]
    assert changed(TEXT, "Write `1.0` for", TRAINER) == TEXT.replace('"au|to"', "1.0")


def test_what_only_the_person_can_say_is_named_and_stays() -> None:
    text = '{"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto", "warmup_min_lr": "auto"}}|}'
    title = f"{WHOLE}, except for `total_num_steps`"
    assert list(offered(text, NAME, TRAINER)) == [title]
    assert '"total_num_steps": "auto", "warmup_min_lr": 0' in changed(text, title, TRAINER)
    (left,) = carried_out(text, title, TRAINER).left
    assert left == (
        "`scheduler.params.total_num_steps` stays: the Trainer takes the number of optimizer steps of the run, and it "
        "has no default."
    )


def test_where_nothing_can_be_said_the_action_is_shown_with_the_reason() -> None:
    text = '{"train_batch_size": |"auto"}'
    (action,) = offered(text, NAME, TRAINER).values()
    assert action.title == WHOLE
    assert action.disabled.startswith("`train_batch_size` stays: the Trainer takes world size ×")


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ('{"zero_optimization": {"stage": 3, "overlap_comm": |"auto"}}', '{"zero_optimization": {"stage": 3}}'),
        (
            '{"optimizer": {"type": "Adam", "params": {"amsgrad": |"auto"}}}',
            '{"optimizer": {"type": "Adam", "params": {}}}',
        ),
        ('{"steps_per_print": |"auto"}', "{}"),
    ],
)
def test_where_no_program_has_a_value_the_default_holds(text: str, then: str) -> None:
    assert changed(text, WHOLE, TRAINER) == then


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            '{"zero_optimization": {"offload_param": {"device": "nvme", "nvme_path": |"auto"}}}',
            "`zero_optimization.offload_param.nvme_path` stays: it has to be a path on your NVMe drive.",
        ),
        ('{"optimizer": {"type": |"auto"}}', "`optimizer.type` stays: no program fills it, and it has no default."),
        ('{"my_own": |"auto"}', "`my_own` stays: DeepSpeed does not know it."),
    ],
)
def test_what_nobody_else_can_say_is_shown_with_the_reason(text: str, why: str) -> None:
    assert [action.disabled for action in offered(text, NAME, TRAINER).values()] == [why]


def test_auto_that_is_a_value_of_its_own_is_no_case() -> None:
    assert offered('{"data_types": {"keep_in_fp32_modules": |"auto"}}', NAME, TRAINER) == {}


def test_a_second_time_nothing_is_left() -> None:
    view = View(parse(RESOLVED), TRAINER)
    assert [action for action in actions(view, 0, len(RESOLVED)) if action.data[0] == NAME] == []
