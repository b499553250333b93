from __future__ import annotations

import pytest

from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.editing.actions import actions
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Settings
from tests.editing.actions.offering import carried_out, changed, offered
from tests.editing.marked import marked

NAME = "stage"
STAGE_3 = """{
  "train_batch_size": 8,
  "zero_optimization": {
    "stage": 3, // as |large as it gets
    "overlap_comm": true,
    "stage3_max_live_parameters": 5e8, // measured
    "sub_group_size": 1e9,
    "leaf_module": {
      "classes": ["Block"]
    },
    "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme", "pin_memory": true, "buffer_count": 5},
    "offload_param": {"device": "cpu"},
    "stage3_gather_16bit_weights_on_model_save": true
  }
}
"""


def zero(text: str) -> str:
    """Return a config with ``text`` for ZeRO, and the mark in it."""
    return f'{{"train_batch_size": 8, "zero_optimization": {text.replace("{", "{|", 1)}}}'


def test_every_other_stage_is_offered_in_the_section() -> None:
    assert list(offered(STAGE_3, NAME)) == [f"Change to ZeRO stage {stage}" for stage in (0, 1, 2)]
    assert {action.kind for action in offered(STAGE_3, NAME).values()} == {"refactor.rewrite"}


def test_below_stage_3_what_is_for_stage_3_goes() -> None:
    assert changed(STAGE_3, "Change to ZeRO stage 2") == (
        """{
  "train_batch_size": 8,
  "zero_optimization": {
    "stage": 2, // as large as it gets
    "overlap_comm": true,
    "offload_optimizer": {"device": "cpu", "pin_memory": true}
  }
}
"""
    )


def test_what_went_and_why_is_told() -> None:
    assert carried_out(STAGE_3, "Change to ZeRO stage 1").done == (
        "`zero_optimization.stage3_max_live_parameters` goes: it is for stage 3.",
        "`zero_optimization.sub_group_size` goes: it is for stage 3.",
        "`zero_optimization.leaf_module` goes: it is for stage 3.",
        "`zero_optimization.offload_optimizer.nvme_path` goes: it is for stage 3.",
        "`zero_optimization.offload_optimizer.buffer_count` goes: it is for stage 3.",
        "`zero_optimization.offload_param` goes: it is for stage 3.",
        "`zero_optimization.stage3_gather_16bit_weights_on_model_save` goes: it is for stage 3.",
        "`offload_optimizer.device` is cpu, which nvme is taken for below stage 3.",
        "ZeRO stage 1.",
    )


@pytest.mark.parametrize(
    ("before", "stage", "after"),
    [
        ('{"stage": 3, "offload_optimizer": {"device": "cpu"}, "reduce_bucket_size": 5}', 0, '{"stage": 0}'),
        (
            '{"stage": 2, "round_robin_gradients": true}',
            3,
            '{"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}',
        ),
        (
            '{"stage": 2, "stage3_gather_fp16_weights_on_model_save": false}',
            3,
            '{"stage": 3, "stage3_gather_fp16_weights_on_model_save": false}',
        ),
        (
            '{"stage": 2, "gather_16bit_weights_on_model_save": false}',
            3,
            '{"stage": 3, "gather_16bit_weights_on_model_save": false}',
        ),
        (
            '{"stage": 2, "offload_optimizer": {"device": "nvme"}}',
            3,
            '{"stage": 3, "offload_optimizer": {"device": "cpu"}, "stage3_gather_16bit_weights_on_model_save": true}',
        ),
        ('{"stage": "auto", "sub_group_size": 5}', 1, '{"stage": 1}'),
        ('{"overlap_comm": false}', 1, '{"overlap_comm": false, "stage": 1}'),
        ('{"stage": 1, "cpu_offload": true, "cpu_offload_param": true}', 2, '{"stage": 2, "cpu_offload": true}'),
        (
            '{"stage": 2, "compute_grad_norm": true}',
            3,
            '{"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}',
        ),
    ],
)
def test_what_comes_and_goes(before: str, stage: int, after: str) -> None:
    assert changed(zero(before), f"Change to ZeRO stage {stage}") == zero(after).replace("|", "")


@pytest.mark.parametrize(("switch", "stage"), [("true", 1), ("true", 2), ("false", 0), ("false", 3)])
def test_the_old_switch_becomes_an_object(switch: str, stage: int) -> None:
    text = f'{{"train_batch_size": 8, "zero_optimization": |{switch}}}'
    result = parse(changed(text, f"Change to ZeRO stage {stage}")).node_at(("zero_optimization", "stage"))
    assert result is not None
    assert result.value() == stage


def test_a_config_without_zero_can_be_given_it() -> None:
    text = '{"train_batch_size": 8,| "optimizer": {"type": "SGD", "params": {"lr": 0.1}}}'
    assert list(offered(text, NAME)) == [f"Train with ZeRO stage {stage}" for stage in (1, 2, 3)]
    assert changed(text, "Train with ZeRO stage 1") == (
        '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}, '
        '"zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": true}'
    )
    assert offered('{"train_batch_|size": 8}', NAME) == {}


def test_keys_of_other_sections_go_where_they_lose_their_effect() -> None:
    text = (
        '{"train_batch_size": 8, "zero_optimization": {|"stage": 1, "zenflow": null}, "bf16": {"enabled": true, '
        '"bf16_master_weights_and_grads": false}, "checkpoint": {"load_universal": true}, '
        '"zero_allow_untested_optimizer": true}'
    )
    assert changed(text, "Change to ZeRO stage 0") == (
        '{"train_batch_size": 8, "zero_optimization": {"stage": 0}, "bf16": {"enabled": true}, "checkpoint": {}, '
        '"zero_allow_untested_optimizer": true}'
    )


@pytest.mark.parametrize(
    ("more", "stage", "reason"),
    [
        ('"pipeline": {"partition": "best"}', 2, "the pipeline engine takes ZeRO stage 0 or 1"),
        ('"gradient_allreduce_op": "SUM"', 3, "stage 3 refuses `gradient_allreduce_op` sum"),
        (
            '"fp16": {"enabled": true}',
            0,
            "fp16 without ZeRO divides by a loss scale that the loss was never multiplied by",
        ),
    ],
)
def test_what_is_in_the_way_is_shown(more: str, stage: int, reason: str) -> None:
    text = f'{{"train_batch_size": 8, {more}, "zero_optimization": {{"stage": |1}}}}'
    found = offered(text, NAME)
    assert found[f"Change to ZeRO stage {stage}"].disabled == reason
    assert carried_out(text, f"Change to ZeRO stage {stage}").left == (reason,)
    assert sum(not action.disabled for action in found.values()) > 0


@pytest.mark.parametrize("version", ["0.14.5", "0.18.0"])
def test_releases_that_scaled_the_loss_of_fp16_alone_take_stage_0(version: str) -> None:
    text = '{"train_batch_size": 8, "fp16": {"enabled": true}, "zero_optimization": {"stage": |1}}'
    assert offered(text, NAME, Settings(version=version))["Change to ZeRO stage 0"].disabled == ""


def test_an_optimizer_without_zero_is_told_for_releases_that_have_it() -> None:
    text = '{"train_batch_size": 8, "optimizer": {"type": "OneBitAdam"}, "zero_optimization": {"stage": |0}}'
    found = offered(text, NAME, Settings(version="0.16.4"))
    assert {action.disabled for action in found.values()} == {"OneBitAdam excludes ZeRO"}


def test_a_change_that_brings_an_error_is_refused_with_it() -> None:
    text = (
        '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}, '
        '"scheduler": {"type": "StepLR", "params": {"step_size": 1}}, "zero_optimization": {"stage": |0}}'
    )
    done = carried_out(text, "Change to ZeRO stage 1")
    assert done.edits == ()
    assert done.left[0].startswith("DS775: ")


def test_broken_text_is_told() -> None:
    found = offered('{"zero_optimization": {"stage": |1}', NAME)
    assert all(action.disabled.startswith("the text cannot be edited before") for action in found.values())


def test_keys_that_may_stand_elsewhere_are_not_added() -> None:
    view, offset = marked('{"train_batch_size": 8 |}')
    part = View(view.document, whole=False)
    assert [action for action in actions(part, offset, offset) if action.data[0] == NAME] == []


def test_the_stage_that_a_consumer_fills_can_be_pinned() -> None:
    text = '{"train_batch_size": "auto", "zero_optimization": {"stage": "au|to"}}'
    settings = Settings(consumer=Consumer.ACCELERATE)
    assert len(offered(text, NAME, settings)) == 4
    assert changed(text, "Change to ZeRO stage 2", settings) == text.replace('"au|to"', "2")
