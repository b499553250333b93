from __future__ import annotations

import pytest

from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.editing.actions import actions
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Settings
from tests.editing.actions.offering import carried_out, changed, offered

NAME = "use-auto"
TRAINER = Settings(consumer=Consumer.TRANSFORMERS)
TEXT = (
    '{"train_micro_batch_size_per_gpu": |4, "zero_optimization": {"stage": 2, "reduce_bucket_size": 5}, '
    '"optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": [0.9, 0.95]}}}'
)
WHOLE = 'Write "auto" for every value that has to match an argument of the Transformers Trainer (3)'


def test_values_that_have_to_match_become_auto() -> None:
    assert list(offered(TEXT, NAME, TRAINER)) == [
        'Write "auto" for `train_micro_batch_size_per_gpu`: TrainingArguments.per_device_train_batch_size',
        WHOLE,
    ]
    assert changed(TEXT, WHOLE, TRAINER) == (
        '{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2, "reduce_bucket_size": 5}, '
        '"optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}}}'
    )
    assert changed(TEXT, 'Write "auto" for `train', TRAINER) == TEXT.replace("|4", '"auto"')


def test_it_is_told_where_each_value_comes_from() -> None:
    assert carried_out(TEXT, WHOLE, TRAINER).done[1] == (
        "`optimizer.params.lr` is taken from TrainingArguments.learning_rate."
    )


@pytest.mark.parametrize("consumer", [Consumer.DEEPSPEED, Consumer.ACCELERATE])
def test_who_compares_nothing_is_offered_nothing(consumer: Consumer) -> None:
    assert offered(TEXT, NAME, Settings(consumer=consumer)) == {}


def test_a_second_time_nothing_is_left() -> None:
    view = View(parse(changed(TEXT, WHOLE, TRAINER)), TRAINER)
    assert [action for action in actions(view, 0, len(view.text)) if action.data[0] == NAME] == []
