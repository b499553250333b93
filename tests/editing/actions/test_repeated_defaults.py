from __future__ import annotations

import pytest

from dsmigrate.document import apply, parse
from dsmigrate.editing import View
from dsmigrate.editing.actions import actions, outcome
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Settings
from tests.editing.actions.offering import changed, offered
from tests.editing.marked import marked

NAME = "remove-defaults"
FILE = "Remove what equals its default in this file"
TEXT = """{
  "train_batch_size": 8,
  "dump_state": false, // not now
  "fp16": {
    "enabled": false,
    "loss_scale": 0
  },
  "zero_optimization": {
    "stage": 3,
    "overlap_|comm": true,
    "contiguous_gradients": true,
    "sub_group_size": 1e9
  }
}
"""


def test_keys_go_for_the_file_or_for_the_section_of_the_cursor() -> None:
    assert list(offered(TEXT, NAME)) == [
        "Remove what equals its default in `zero_optimization` (2 keys)",
        f"{FILE} (5 keys)",
    ]
    assert changed(TEXT, "Remove what equals its default in `zero") == TEXT.replace("|", "").replace(
        'true,\n    "contiguous_gradients": true,\n    "sub_group_size": 1e9\n', "true\n"
    )
    assert changed(TEXT, FILE) == (
        """{
  "train_batch_size": 8,
  "zero_optimization": {
    "stage": 3,
    "overlap_comm": true
  }
}
"""
    )


def test_a_second_time_nothing_is_left() -> None:
    view = View(parse(changed(TEXT, FILE)))
    assert [action for action in actions(view, 0, len(view.text)) if action.data[0] == NAME] == []


@pytest.mark.parametrize(
    "text",
    [
        '{"gradient_clipping": 1.0}',  # its default moved: left out, it means another thing in another release
        '{"comms_logger": {"enabled": false}}',  # the section alone is the switch, and this its name
        '{"zero_optimization": {"stage": 0, "overlap_comm": true}}',  # the rest would be a riddle
        '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "none", "ratio": 0.5}}}',
        '{"zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": false}}',  # an answer
        '{"activation_checkpointing": {"contiguous_memory_optimization": false, "number_checkpoints": 4}}',
        '{"zero_optimization": {"cpu_offload": false}}',  # deprecated: it acts when it is written at all
        '{"optimizer": {"type": "AdamW", "params": {"betas": [0.9, 0.999]}}}',
        '{"bfloat16": {"enabled": false}}',
        '{"zero_allow_untested_optimizer": "false"}',
        '{"dump_state": 0}',
        '{"zero_optimization": {"reduce_bucket_size": true}}',
        '{"my_own": {"dump_state": false}}',
        '{"dump_state": false, "dump_state": false}',
    ],
)
def test_what_its_absence_would_not_say_stays(text: str) -> None:
    view = View(parse(text))
    assert [outcome(view, action.data) for action in actions(view, 0, len(text)) if _is_able(action)] == []


def _is_able(action: object) -> bool:
    return getattr(action, "data", ("",))[0] == NAME and not getattr(action, "disabled", "")


def test_a_section_goes_when_nothing_of_it_would_be_left() -> None:
    text = '{"a": 1, "flops_profiler": {"enabled": false, "profile_step": 1}|}'
    assert changed(text, FILE) == '{"a": 1}'


def test_a_section_with_a_comment_stays_for_it() -> None:
    text = '{\n  "flops_profiler": {\n    // later\n    "profile_step": 1|\n  }\n}\n'
    assert changed(text, FILE) == '{\n  "flops_profiler": {\n    // later\n  }\n}\n'


def test_a_consumer_keeps_what_it_fills_compares_or_makes_anew() -> None:
    text = '{"fp16": {"enabled": false, "loss_scale": 0}, "zero_optimization": {"stage": 0, "overlap_comm": null|}}'
    assert changed(text, FILE, Settings(consumer=Consumer.DEEPSPEED)) == "{}"
    assert changed(text, FILE, Settings(consumer=Consumer.ACCELERATE)) == (
        '{"fp16": {"enabled": false}, "zero_optimization": {"stage": 0}}'
    )


def test_the_default_is_that_of_the_release() -> None:
    text = '{"hybrid_engine": {"max_out_tokens": 512|}}'
    assert changed(text, FILE) == "{}"
    assert offered('{"disable_python_gc": false|}', NAME, Settings(version="0.16.4")) == {}


def test_values_of_a_script_are_never_taken_for_defaults() -> None:
    view, offset = marked('{"dump_state": false|, "memory_breakdown": false}')
    start = view.text.index("false")
    part = View(view.document, unknown=[(start, start + 5)])
    (action,) = (action for action in actions(part, offset, offset) if action.data[0] == NAME)
    assert action.title == f"{FILE} (1 key)"
    assert apply(view.text, outcome(part, action.data).edits) == '{"dump_state": false}'
