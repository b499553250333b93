from __future__ import annotations

from dsmigrate.document import apply, parse
from dsmigrate.editing.actions.draft import put, started
from dsmigrate.editing.actions.judging import new_errors, settled
from dsmigrate.rules import Settings

TEXT = '{"train_batch_size": 8, "fp16": {"enabled": true}, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}}'
SETTINGS = Settings()


def test_a_change_that_brings_an_error_is_refused_with_its_message() -> None:
    draft = started(parse(TEXT)).after([put(("bf16",), {"enabled": True})])
    assert [finding.code for finding in new_errors(SETTINGS, draft)] == ["DS300"]
    refused = settled(SETTINGS, draft)
    assert refused.edits == ()
    assert refused.left == ("DS300: DeepSpeed rejects fp16 together with `bf16.enabled`; keep one of them",)


def test_rules_that_are_left_out_count_here() -> None:
    draft = started(parse(TEXT)).after([put(("zero_optimization", "stage"), 1)])
    assert settled(Settings(ignore=("DS",)), draft).left[0].startswith("DS660: ")


def test_errors_that_were_there_do_not_matter() -> None:
    text = TEXT.replace('{"enabled": true}', '{"enabled": 7}')
    draft = started(parse(text)).after([put(("steps_per_print",), 5, "It prints.")])
    assert settled(SETTINGS, draft).done == ("It prints.",)


def test_a_mend_that_belongs_to_the_change_is_made_with_it() -> None:
    draft = started(parse(TEXT)).after([put(("zero_optimization", "stage"), 1)])
    assert settled(SETTINGS, draft).left[0].startswith("DS660: ")
    mended = settled(SETTINGS, draft, mend={"DS660"})
    assert mended.done == ("Set `zero_allow_untested_optimizer`.",)
    assert parse(apply(TEXT, mended.edits)).node_at(("zero_allow_untested_optimizer",)) is not None
