from __future__ import annotations

import pytest

from dsmigrate.document import apply, parse
from dsmigrate.editing import View
from dsmigrate.editing.actions import actions, outcome
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Settings
from tests.editing.actions.offering import changed, offered
from tests.editing.marked import marked

PLAIN = '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "sub_|group_size": 5}}'
AT = "zero_optimization.sub_group_size"
COMMENTED = """{
  // for two GPUs
  "train_batch_size": 8,
  "zero_optimization": {
    "stage": 2,
    "sub_|group_size": 5
  }
}
"""


def test_a_rule_is_left_out_here_or_in_the_file() -> None:
    found = offered(PLAIN, "suppress")
    assert list(found) == [f"Ignore DS401 at `{AT}`", "Ignore DS401 in this file"]
    assert {action.kind for action in found.values()} == {"quickfix"}
    assert not any(action.preferred or action.disabled for action in found.values())


def test_strict_json_gets_a_key() -> None:
    start = PLAIN.replace("|", "")[:-1]
    assert changed(PLAIN, "Ignore DS401 in") == f'{start}, "_dsmigrate": {{"ignore": ["DS401"]}}}}'
    assert changed(PLAIN, "Ignore DS401 at") == f'{start}, "_dsmigrate": {{"ignore-at": {{"{AT}": ["DS401"]}}}}}}'


@pytest.mark.parametrize(
    ("there", "title", "then"),
    [
        ('{"ignore": ["DS1"]}', "in", '{"ignore": ["DS1", "DS401"]}'),
        ('{"ignore": "DS1"}', "in", '{"ignore": "DS1,DS401"}'),
        ('{"ignore": 7}', "in", '{"ignore": ["DS401"]}'),
        ("{}", "in", '{"ignore": ["DS401"]}'),
        ('{"ignore": ["DS1"]}', "at", f'{{"ignore": ["DS1"], "ignore-at": {{"{AT}": ["DS401"]}}}}'),
        (f'{{"ignore-at": {{"{AT}": ["DS1"]}}}}', "at", f'{{"ignore-at": {{"{AT}": ["DS1", "DS401"]}}}}'),
        (
            '{"ignore-at": {"\\"zero_optimization\\".sub_group_size": "DS1"}}',
            "at",
            '{"ignore-at": {"\\"zero_optimization\\".sub_group_size": "DS1,DS401"}}',
        ),
        (f'{{"ignore-at": {{"a..": [], "{AT}": 3}}}}', "at", f'{{"ignore-at": {{"a..": [], "{AT}": ["DS401"]}}}}'),
    ],
)
def test_what_the_key_holds_already_stays(there: str, title: str, then: str) -> None:
    text = PLAIN[:-1] + f', "_dsmigrate": {there}}}'
    assert changed(text, f"Ignore DS401 {title}").endswith(f'"_dsmigrate": {then}}}')


@pytest.mark.parametrize(("there", "title"), [("3", "in"), ('{"ignore-at": []}', "at")])
def test_a_key_of_another_shape_is_not_touched(there: str, title: str) -> None:
    view, offset = marked(PLAIN[:-1] + f', "_dsmigrate": {there}}}')
    (action,) = (a for a in actions(view, offset, offset) if a.title.startswith(f"Ignore DS401 {title}"))
    done = outcome(view, action.data)
    assert done.edits == ()
    assert done.left[0].endswith("is not an object")


def test_a_file_with_comments_gets_one() -> None:
    assert changed(COMMENTED, "Ignore DS401 on line 6") == COMMENTED.replace("|", "").replace(
        '    "sub', '    // dsmigrate: ignore[DS401]\n    "sub'
    )
    assert changed(COMMENTED, "Ignore DS401 in this file") == (
        "// dsmigrate: ignore-file[DS401]\n" + COMMENTED.replace("|", "")
    )


def test_a_comment_is_written_as_the_file_writes_them() -> None:
    text = COMMENTED.replace("// for", "# for").replace("\n", "\r\n")
    assert '    # dsmigrate: ignore[DS401]\r\n    "sub' in changed(text, "Ignore DS401 on line 6")


@pytest.mark.parametrize(
    ("comment", "title", "then"),
    [
        ("// dsmigrate: ignore[DS1]", "on line 6", "// dsmigrate: ignore[DS1, DS401]"),
        ("// dsmigrate: ignore[]", "on line 6", "// dsmigrate: ignore[DS401]"),
        ("// dsmigrate: ignore[DS1] for now", "on line 6", "// dsmigrate: ignore[DS1, DS401] for now"),
        ("// dsmigrate: ignore-file[DS1]", "in this file", "// dsmigrate: ignore-file[DS1, DS401]"),
    ],
)
def test_a_comment_that_is_there_takes_the_code(comment: str, title: str, then: str) -> None:
    text = COMMENTED.replace("5\n", f"5 {comment}\n")
    assert changed(text, f"Ignore DS401 {title}") == text.replace("|", "").replace(comment, then)


@pytest.mark.parametrize("consumer", [Consumer.TRANSFORMERS, Consumer.ACCELERATE])
def test_a_reader_of_strict_json_never_gets_a_comment(consumer: Consumer) -> None:
    settings = Settings(consumer=consumer)
    for text in (PLAIN, COMMENTED):
        before = len(parse(text.replace("|", "")).comments)
        for title in offered(text, "suppress", settings):
            result = parse(changed(text, title, settings))
            assert len(result.comments) == before
            assert result.node_at(("_dsmigrate",)) is not None


@pytest.mark.parametrize("text", [PLAIN, COMMENTED, "\ufeff" + COMMENTED, COMMENTED.replace("\n", "\r\n")])
def test_the_finding_is_gone_and_nothing_else_changes(text: str) -> None:
    view, offset = marked(text)
    for action in actions(view, offset, offset):
        if action.data[0] == "suppress":
            after = View(parse(apply(view.text, outcome(view, action.data).edits)))
            assert not [finding for finding in after.findings if finding.code == "DS401"]
            config = after.document.value()
            assert isinstance(config, dict)
            config.pop("_dsmigrate", None)
            assert config == view.document.value()
            assert after.document.has_bom == view.document.has_bom


def test_a_finding_about_the_whole_file_is_left_out_in_the_file_alone() -> None:
    assert list(offered('|{"zero_optimization": {"stage": 1}}', "suppress")) == ["Ignore DS200 in this file"]


def test_a_broken_text_is_not_edited() -> None:
    found = offered('{"train_batch_size": 8, "zero_optimization": {"stage": 2, "sub_|group_size": 5}', "suppress")
    assert found
    assert all(action.disabled.startswith("the text cannot be edited") for action in found.values())
