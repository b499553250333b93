from __future__ import annotations

import pytest

from dsmigrate.document import apply, parse
from dsmigrate.editing import View
from dsmigrate.editing.actions import Outcome, actions, upgrade
from dsmigrate.knowledge import Consumer, knowledge
from dsmigrate.rules import Facts, Settings
from tests.editing.actions.offering import changed, offered

NEWEST = knowledge().version
KEPT = '"gradient_clipping": 0.5, "steps_per_print": 5'
"""The keys whose default moved for every config, so that nothing is written down for them."""


def upgraded(
    text: str, before: str, consumer: Consumer = Consumer.DEEPSPEED, after: str = NEWEST
) -> tuple[str, Outcome]:
    done = upgrade(parse(text), before, after, consumer)
    return apply(text, done.edits), done


def config(more: str) -> str:
    return f'{{"train_batch_size": 8, {KEPT}, {more}}}' if more else f'{{"train_batch_size": 8, {KEPT}}}'


@pytest.mark.parametrize(
    ("before", "version", "after"),
    [
        ('"amp": {"enabled": false}', "0.16.4", ""),
        ('"zero_optimization": {"stage": 3, "mics_shard_size": -1}', "0.16.4", '"zero_optimization": {"stage": 3}'),
        ('"aio": {"thread_count": 2}', "0.15.0", '"aio": {"intra_op_parallelism": 2}'),
        ('"aio": {"thread_count": 2}', "0.18.0", '"aio": {"thread_count": 2}'),  # read by neither: nothing changes
        ('"compile": {"backend": "inductor"}', "0.14.2", '"compile": {}'),
        ('"bf16": {"enabled": false, "loss_scale": 0}', "0.16.4", '"bf16": {"enabled": false}'),
        ('"fp16": {"enabled": false, "opt_level": "O2"}', "0.14.0", '"fp16": {"enabled": false}'),
        ('"zero_optimization": true', "0.18.0", '"zero_optimization": {"stage": 1}'),
        (
            '"zero_optimization": {"stage": 2, "cpu_offload": true}',
            "0.19.5",
            '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}',
        ),
        (
            '"zero_optimization": {"stage": 2, "cpu_offload": true}',
            "0.18.0",
            '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": false}}',
        ),
        (
            '"zero_optimization": {"stage": 3, "stage3_gather_fp16_weights_on_model_save": true}',
            "0.18.0",
            '"zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}',
        ),
        (
            '"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0}}',
            "0.19.2",
            '"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 2}}',
        ),
        (
            '"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1}}',
            "0.19.2",
            '"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1}}',
        ),
        (
            '"bf16": {"enabled": true}, "zero_optimization": {"stage": 1}',
            "0.18.9",
            '"bf16": {"enabled": true, "check_grad_overflow": false}, "zero_optimization": {"stage": 1}',
        ),
    ],
)
def test_what_becomes_of_a_key(before: str, version: str, after: str) -> None:
    text, done = upgraded(config(before), version)
    assert text == config(after)
    assert done.left == ()
    assert bool(done.done) is (before != after)


def test_defaults_that_moved_are_written_down() -> None:
    text, done = upgraded('{"train_batch_size": 8}', "0.14.5")
    assert text == '{"train_batch_size": 8, "gradient_clipping": 0.0, "steps_per_print": 10}'
    assert done.done[0] == (f"`gradient_clipping` is 0.0: left out it meant 0.0 in 0.14.5 and means 1.0 in {NEWEST}.")


def test_a_default_that_the_consumer_compares_is_the_persons() -> None:
    text, done = upgraded(
        '{"train_batch_size": "auto", "zero_optimization": {"stage": 2}}', "0.18.9", Consumer.TRANSFORMERS
    )
    assert done.edits == ()
    (left,) = done.left
    assert left == (
        f"`gradient_clipping` is left out: it meant 0.0 in 0.18.9 and means 1.0 in {NEWEST}. "
        'Write "auto" and choose with TrainingArguments.max_grad_norm.'
    )
    assert text.endswith("}")


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (
            '"amp": {"enabled": true, "opt_level": "O1"}',
            "`amp` was on, and is gone; `torch_autocast` or `bf16` or `fp16` may do instead:",
        ),
        (
            '"compression_training": {"weight_quantization": {"shared_parameters": {"enabled": true}}}',
            "`compression_training` was on, and is gone without a replacement:",
        ),
        ('"sparse_gradients": true', "`sparse_gradients` was on, and is gone without a replacement:"),
        (
            '"zero_optimization": {"stage": 3, "mics_shard_size": 4}',
            "`zero_optimization.mics_shard_size` was on, and is gone without a replacement:",
        ),
    ],
)
def test_a_feature_that_was_on_and_is_gone_is_named(before: str, told: str) -> None:
    _, done = upgraded(config(before), "0.16.4")
    assert len(done.left) == 1
    assert done.left[0].startswith(told)


def test_elasticity_stays_where_only_it_knew_the_batch_size() -> None:
    text = f'{{{KEPT}, "elasticity": {{"enabled": true, "max_train_batch_size": 64, "micro_batch_sizes": [4]}}}}'
    _, done = upgraded(text, "0.16.4")
    assert done.edits == ()
    assert done.left[0].startswith("`elasticity` computed the batch size; write `train_batch_size` or")
    assert [left[:7] for left in done.left[1:]] == ["DS200: ", "DS110: "]


def test_what_the_new_release_refuses_is_left_with_the_rule_that_says_so() -> None:
    _, done = upgraded(
        config('"fp16": {"enabled": true, "min_loss_scale": 0.5}, "zero_optimization": {"stage": 1}'), "0.16.4"
    )
    assert [left[:7] for left in done.left] == ["DS121: "]


def test_errors_that_were_there_before_are_not_told() -> None:
    _, done = upgraded(config('"zero_optimization": {"stage": 7}'), "0.18.9")
    assert done == Outcome()


def test_keys_that_begin_to_act_are_told() -> None:
    _, done = upgraded(config('"managed_gradient_accumulation": false, "disable_python_gc": false'), "0.18.9")
    (left,) = done.left
    assert left == (
        "`managed_gradient_accumulation` did nothing in 0.18.9, which did not know it, and acts in "
        f"{NEWEST}: make sure it is meant."
    )


def test_a_new_name_that_is_there_already_counts() -> None:
    text, done = upgraded(config('"aio": {"thread_count": 2, "intra_op_parallelism": 3}'), "0.15.0")
    assert text == config('"aio": {"intra_op_parallelism": 3}')
    assert done.left[0].startswith("`aio.intra_op_parallelism` did nothing in 0.15.0, which did not know it,")


def test_comments_in_a_section_that_became_strict_are_left_to_the_person() -> None:
    text, done = upgraded(config('"fp16": {"enabled": false, "_comment": "later"}'), "0.16.4")
    assert text == config('"fp16": {"enabled": false, "_comment": "later"}')
    assert done.left[0].startswith("DS104: ")


def test_any_later_release_can_be_the_goal() -> None:
    text, done = upgraded('{"train_batch_size": 8, "amp": {"enabled": true}}', "0.14.5", after="0.16.4")
    assert text == '{"train_batch_size": 8, "amp": {"enabled": true}, "steps_per_print": 10}'
    assert done.left == ()


def test_an_older_release_is_no_goal() -> None:
    assert upgrade(parse("{}"), "0.19.0", "0.18.0").left == ("DeepSpeed 0.18.0 is older than 0.19.0.",)
    with pytest.raises(ValueError, match="not a version"):
        upgrade(parse("{}"), "new", "newest")


def test_broken_text_is_told() -> None:
    assert upgrade(parse('{"a": '), "0.18.0", NEWEST).left[0].startswith("the text cannot be edited")


def test_layout_and_comments_stay() -> None:
    start = "# ours\ntrain_batch_size: 8\ngradient_clipping: 1.0\nsteps_per_print: 1\n"
    text = f"{start}aio: {{\n  thread_count: 2 # fast\n}}\namp: {{enabled: false}}\n"
    assert upgraded(text, "0.15.0")[0] == f"{start}aio: {{\n  intra_op_parallelism: 2 # fast\n}}\n"


def test_the_action_is_offered_while_there_is_something_to_do() -> None:
    settings = Settings(version="0.16.4")
    text = '{"train_batch_size": 8|}'
    assert list(offered(text, "upgrade", settings)) == [f"Upgrade this config from DeepSpeed 0.16.4 to {NEWEST}"]
    result = changed(text, "Upgrade this", settings)
    assert result == '{"train_batch_size": 8, "gradient_clipping": 0.0}'
    view = View(parse(result), settings)
    assert [action for action in actions(view, 0, 0) if action.data[0] == "upgrade"] == []


def test_the_release_that_one_comes_from_is_the_start() -> None:
    settings = Settings(facts=Facts(before="0.14.5"))
    assert changed('{"train_batch_size": 8|}', "Upgrade this config from DeepSpeed 0.14.5", settings) == (
        '{"train_batch_size": 8, "gradient_clipping": 0.0, "steps_per_print": 10}'
    )
    assert offered('{"train_batch_size": 8|}', "upgrade") == {}
