from __future__ import annotations

from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.editing.actions import actions, outcome
from tests.editing.actions.offering import changed, offered

INERT = """{
  "train_batch_size": 8,
  "zero_optimization": {
    "stage": 2, // as measured
    "stage3_max_live_|parameters": 5, // why not
    "sub_group_size": 7,
    "overlap_comm": "auto"
  }
}
"""


def test_the_findings_of_one_rule_are_mended_together() -> None:
    found = offered(INERT, "fix-code")
    assert list(found) == ["Fix all 2 of DS401 in this file"]
    assert [code.code for code in found["Fix all 2 of DS401 in this file"].codes] == ["DS401", "DS401"]
    assert changed(INERT, "Fix all 2 of DS401 in this file") == (
        """{
  "train_batch_size": 8,
  "zero_optimization": {
    "stage": 2, // as measured
    "overlap_comm": "auto"
  }
}
"""
    )


def test_one_finding_needs_no_fix_for_all() -> None:
    assert offered(INERT.replace('"sub_group_size": 7,\n', ""), "fix-code") == {}


def test_guesses_are_made_together_where_a_rule_has_nothing_else() -> None:
    text = """{"train_batch_size": 1, "tensorboard": {"outp|ut_path": "a"}, "wandb": {"team": "b"}}"""
    found = offered(text.replace("tensorboard", "tensor|board").replace("outp|ut", "output"), "fix-code")
    assert list(found) == ["Fix all 2 of DS390 in this file"]


def test_every_safe_fix_of_the_file_is_one_source_action() -> None:
    view = View(parse(INERT.replace("|", "")))
    (action,) = actions(view, 0, 0, kinds=["source.fixAll"])
    assert (action.title, action.kind) == ("Apply every safe fix in this file", "source.fixAll.dsmigrate")
    assert sorted(code.code for code in action.codes) == ["DS401", "DS401", "DS802"]
    done = outcome(view, action.data)
    assert sorted(done.done) == [
        "DS401: Remove `zero_optimization.stage3_max_live_parameters`.",
        "DS401: Remove `zero_optimization.sub_group_size`.",
        "DS802: Remove `zero_optimization.overlap_comm`, which changes nothing.",
    ]
    assert min(edit.start for edit in done.edits) >= view.text.index(", // as measured")


def test_a_file_without_safe_fixes_has_no_source_action() -> None:
    view = View(parse('{"train_batch_size": 1, "fp16": {"enabled": true}, "bf16": {"enabled": true}}'))
    assert actions(view, 0, len(view.text), kinds=["source"]) == ()


def test_values_of_a_script_are_left_alone() -> None:
    text = '{"zero_optimization": {"stage": 2, "sub_group_size": null, "leaf_module": {"classes": []}}}'
    start = text.index("null")
    view = View(parse(text), unknown=[(start, start + 4)])
    data = next(action.data for action in actions(view, 0, 0) if action.data[0] == "fix-all")
    edits = outcome(view, data).edits
    assert edits
    assert not any(edit.start <= start < edit.end or "null" in edit.text for edit in edits)
