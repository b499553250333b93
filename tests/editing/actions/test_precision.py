from __future__ import annotations

import pytest

from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Settings
from tests.editing.actions.offering import carried_out, changed, offered

NAME = "precision"
TO_BF16 = "Switch from fp16 to bf16"
TO_FP16 = "Switch from bf16 to fp16"
TAIL = ', "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}'
HEAD = '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.1}}, '


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"fp16": {|"enabled": true}', '"bf16": {"enabled": true}'),
        ('"fp16": {|"enabled": true, "loss_scale": 0, "initial_scale_power": 12}', '"bf16": {"enabled": true}'),
        (
            '"fp16": {|"enabled": true, "fp16_master_weights_and_grads": true}',
            '"bf16": {"enabled": true, "bf16_master_weights_and_grads": true}',
        ),
        (
            '"fp16": {|"enabled": true, "hysteresis": 3}, "bf16": {"enabled": false}',
            '"fp16": {"enabled": false, "hysteresis": 3}, "bf16": {"enabled": true}',
        ),
        (
            '"fp16": {|"enabled": true, "fp16_master_weights_and_grads": true, "auto_cast": true}, "bf16": {}',
            '"fp16": {"enabled": false}, "bf16": {"bf16_master_weights_and_grads": true, "enabled": true}',
        ),
        (
            '"fp16": {|"enabled": true}, "communication_data_type": "fp16", "data_types": {"grad_accum_dtype": "fp16"}',
            '"bf16": {"enabled": true}, "communication_data_type": "bf16", "data_types": {"grad_accum_dtype": "bf16"}',
        ),
        (
            '"fp16": {|"enabled": true}, "communication_data_type": "fp32"',
            '"bf16": {"enabled": true}, "communication_data_type": "fp32"',
        ),
        ('"fp16": {|"enabled": true}, "bf16": null', '"bf16": {"enabled": true}'),
    ],
)
def test_fp16_becomes_bf16(before: str, after: str) -> None:
    assert changed(HEAD + before + TAIL, TO_BF16) == HEAD + after + TAIL


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"bf16": {|"enabled": true}', '"fp16": {"enabled": true}'),
        ('"bfloat16": {|"enabled": true}', '"fp16": {"enabled": true}'),
        ('"bf16": {|"enabled": true, "check_grad_overflow": false}', '"fp16": {"enabled": true}'),
        (
            '"bf16": {|"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}',
            '"fp16": {"enabled": true, "fp16_master_weights_and_grads": true}',
        ),
        (
            '"fp16": {"enabled": false, "loss_scale_window": 500}, "bf16": {|"enabled": true}',
            '"fp16": {"enabled": true, "loss_scale_window": 500}, "bf16": {"enabled": false}',
        ),
    ],
)
def test_bf16_becomes_fp16(before: str, after: str) -> None:
    assert changed(HEAD + before + TAIL, TO_FP16) == HEAD + after + TAIL


def test_the_layout_and_the_comments_stay() -> None:
    text = '{\n  "fp16": {\n    "enabled": tr|ue, // on A100\n    "loss_scale": 0\n  }' + TAIL.replace(", ", ",\n  ", 1)
    assert changed(text, TO_BF16).startswith('{\n  "bf16": {\n    "enabled": true // on A100\n  },\n')


def test_what_the_person_has_to_do_is_told() -> None:
    text = HEAD + '"fp16": {|"enabled": true, "auto_cast": true}' + TAIL
    assert carried_out(text, TO_BF16).left == (
        "`fp16.auto_cast` cast the inputs of the model; bf16 has no such key, so the script has to cast them.",
    )


@pytest.mark.parametrize("text", ['"fp16": {|"enabled": false}', '"bf16": {|}', '"steps_per_|print": 1'])
def test_nothing_is_offered_elsewhere_or_where_neither_is_on(text: str) -> None:
    assert offered(HEAD + text + TAIL, NAME) == {}


@pytest.mark.parametrize(
    ("text", "reason", "consumer"),
    [
        (
            '"fp16": {|"enabled": "auto"}, "bf16": {"enabled": false}',
            '"auto" leaves the choice to the Transformers Trainer',
            Consumer.TRANSFORMERS,
        ),
        ('"fp16": {|"enabled": true}, "bf16": {"enabled": true}', "both are on", Consumer.DEEPSPEED),
    ],
)
def test_where_it_cannot_be_told_the_reason_is_shown(text: str, reason: str, consumer: Consumer) -> None:
    (action,) = offered(HEAD + text + TAIL, NAME, Settings(consumer=consumer)).values()
    assert (action.title, action.disabled) == ("Switch between fp16 and bf16", reason)


def test_fp16_without_zero_is_not_offered() -> None:
    (action,) = offered('{"train_batch_size": 8, "bf16": {"enabled": |true}}', NAME).values()
    assert action.disabled == "fp16 without ZeRO divides by a loss scale that the loss was never multiplied by"
