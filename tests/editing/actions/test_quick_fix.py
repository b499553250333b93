from __future__ import annotations

from dsmigrate.document import apply, parse
from dsmigrate.editing import View
from dsmigrate.editing.actions import Mended, actions, outcome
from tests.editing.actions.offering import carried_out, changed, offered
from tests.editing.marked import marked

BOTH = '{"train_batch_size": 1, "fp16": {"enabled": |true}, "bf16": {"enabled": true}}'


def test_each_alternative_is_offered_and_none_that_is_a_guess_is_preferred() -> None:
    found = offered(BOTH, "fix")
    assert list(found) == ["Switch fp16 off", "Switch bf16 off"]
    assert [action.preferred for action in found.values()] == [False, False]
    start = BOTH.index("|")
    assert found["Switch fp16 off"].codes == (Mended("DS300", start, start + 4),)
    assert {action.kind for action in found.values()} == {"quickfix"}


def test_a_safe_fix_is_preferred() -> None:
    text = '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_|param": {"device": "cpu"}}}'
    found = offered(text, "fix")
    assert [(title, action.preferred) for title, action in found.items()] == [
        ("Remove `zero_optimization.offload_param`", True),
        ("Use stage 3", False),
    ]


def test_a_fix_makes_the_edits_that_the_rule_gave() -> None:
    assert changed(BOTH, "Switch bf16 off") == (
        '{"train_batch_size": 1, "fp16": {"enabled": true}, "bf16": {"enabled": false}}'
    )


def test_a_place_without_a_finding_has_no_fix() -> None:
    assert offered('{"train_batch_|size": 1, "fp16": {"enabled": true}, "bf16": {"enabled": true}}', "fix") == {}


def test_a_fix_of_another_text_is_refused() -> None:
    view, offset = marked(BOTH)
    data = next(action.data for action in actions(view, offset, offset) if action.data[0] == "fix")
    assert outcome(View(parse('{"train_batch_size": 1}')), data).left == ("The finding is gone.",)
    assert outcome(view, ("fix", 0, 7, "DS300")).edits == ()
    assert outcome(view, ("fix", -1, 0, "DS300")).edits == ()


def test_what_was_done_is_told() -> None:
    assert carried_out(BOTH, "Switch fp16 off").done == ("Switch fp16 off.",)


def test_every_fix_of_a_range_is_offered() -> None:
    text = (
        '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "leaf_module": {}, "sub_group_size": 5}, "amp": {}}'
    )
    view = View(parse(text))
    found = [action for action in actions(view, 0, len(text)) if action.data[0] == "fix"]
    assert {code.code for action in found for code in action.codes} >= {"DS401", "DS110"}
    for action in found:
        assert parse(apply(text, outcome(view, action.data).edits)).is_readable
