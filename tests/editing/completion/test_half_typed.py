"""Half-typed texts, an item, and the text after it: commas, colons, quotes, braces, indents."""

from __future__ import annotations

import pytest

from dsmigrate.document import parse
from dsmigrate.editing.completion import Item, complete
from tests.editing.completion.accepting import accepted
from tests.editing.marked import marked

KEYS = {
    "on a line of its own": (
        '{\n    "train_batch_size": 8,\n    |\n}',
        "zero_optimization",
        '{\n    "train_batch_size": 8,\n    "zero_optimization": {\n        "stage": 2\n    }\n}',
    ),
    "between quotes": (
        '{\n    "train_batch_size": 8,\n    "ze|"\n}',
        "zero_optimization",
        '{\n    "train_batch_size": 8,\n    "zero_optimization": {\n        "stage": 2\n    }\n}',
    ),
    "behind an open quote": (
        '{\n    "train_batch_size": 8,\n    "ste|\n}',
        "steps_per_print",
        '{\n    "train_batch_size": 8,\n    "steps_per_print": 10\n}',
    ),
    "a bare word": (
        '{\n    "train_batch_size": 8,\n    ste|\n}',
        "steps_per_print",
        '{\n    "train_batch_size": 8,\n    "steps_per_print": 10\n}',
    ),
    "the comma before is missing": (
        '{\n    "train_batch_size": 8 // all\n    "ste|"\n}',
        "steps_per_print",
        '{\n    "train_batch_size": 8, // all\n    "steps_per_print": 10\n}',
    ),
    "a member follows": (
        '{\n    "ste|"\n    "train_batch_size": 8\n}',
        "steps_per_print",
        '{\n    "steps_per_print": 10,\n    "train_batch_size": 8\n}',
    ),
    "a member follows an open quote": (
        '{\n    "ste|\n    "train_batch_size": 8\n}',
        "steps_per_print",
        '{\n    "steps_per_print": 10,\n    "train_batch_size": 8\n}',
    ),
    "a comma follows": (
        '{"train_batch_size": 8, "ste|", "bf16": {}}',
        "steps_per_print",
        '{"train_batch_size": 8, "steps_per_print": 10, "bf16": {}}',
    ),
    "an indent is missing": (
        '{\n    "train_batch_size": 8,\n|\n}',
        "steps_per_print",
        '{\n    "train_batch_size": 8,\n    "steps_per_print": 10\n}',
    ),
    "an open quote on one line": (
        '{"train_batch_size": 8, "ste|, "bf16": {"enabled": true}}',
        "steps_per_print",
        '{"train_batch_size": 8, "steps_per_print": 10, "bf16": {"enabled": true}}',
    ),
    "touching the next key": (
        '{ "ste|""train_batch_size": 8}',
        "steps_per_print",
        '{ "steps_per_print": 10,"train_batch_size": 8}',
    ),
    "a bare word that touches the next key": (
        '{ ste|"train_batch_size": 8}',
        "steps_per_print",
        '{ "steps_per_print": 10,"train_batch_size": 8}',
    ),
    "a section on one line": (
        '{"train_batch_size": 8, |}',
        "zero_optimization",
        '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
    ),
    "right behind a comma": (
        '{"train_batch_size": 8,|}',
        "steps_per_print",
        '{"train_batch_size": 8, "steps_per_print": 10}',
    ),
    "behind a value": (
        '{"train_batch_size": 8 |}',
        "steps_per_print",
        '{"train_batch_size": 8, "steps_per_print": 10}',
    ),
    "without blanks": (
        '{"train_batch_size":8,"ste|"}',
        "steps_per_print",
        '{"train_batch_size":8,"steps_per_print":10}',
    ),
    "an empty root": (
        "{|}",
        "train_micro_batch_size_per_gpu",
        '{\n    "train_micro_batch_size_per_gpu": 1\n}',
    ),
    "an empty section": (
        '{\n\t"train_batch_size": 8,\n\t"tensorboard": {|}\n}',
        "enabled",
        '{\n\t"train_batch_size": 8,\n\t"tensorboard": {\n\t\t"enabled": true\n\t}\n}',
    ),
    "other line ends": (
        '{\r\n  "train_batch_size": 8,\r\n  |\r\n}',
        "bf16",
        '{\r\n  "train_batch_size": 8,\r\n  "bf16": {\r\n    "enabled": true\r\n  }\r\n}',
    ),
    "Hjson keys": (
        "{zero_optimization: {stage: 3\n  |}}",
        "overlap_comm",
        "{zero_optimization: {stage: 3,\n  overlap_comm: true}}",
    ),
    "Hjson without braces": (
        "train_batch_size: 8\nbf16:\n{\n  enabled: true\n}\nze|",
        "zero_optimization",
        "train_batch_size: 8\nbf16:\n{\n  enabled: true\n}\nzero_optimization: {\n  stage: 2\n}",
    ),
    "single quotes": (
        "{'train_batch_size': 8, '|'}",
        "steps_per_print",
        "{'train_batch_size': 8, 'steps_per_print': 10}",
    ),
    "a text that takes the line": (
        "{\n  train_batch_size: 8\n  communication_data_type: fp32\n  |\n}",
        "steps_per_print",
        "{\n  train_batch_size: 8\n  communication_data_type: fp32\n  steps_per_print: 10\n}",
    ),
    "a colon without a value": (
        '{"train_batch_size": 8, "steps|": }',
        "steps_per_print",
        '{"train_batch_size": 8, "steps_per_print": 10 }',
    ),
    "a type with what it needs": (
        '{\n  "scheduler": {\n    |\n  }\n}',
        "type",
        """{
  "scheduler": {
    "type": "WarmupDecayLR",
    "params": {
      "warmup_max_lr": 2e-05,
      "warmup_min_lr": 0.0,
      "warmup_num_steps": 100,
      "total_num_steps": 10000
    }
  }
}""",
    ),
}

NAMES = {
    "a value follows": ('{"steps|": 10}', "steps_per_print", '{"steps_per_print": 10}'),
    "the colon is missing": ('{"steps|" 10}', "steps_per_print", '{"steps_per_print": 10}'),
    "the closing quote is missing": ('{"steps|: 10}', "steps_per_print", '{"steps_per_print": 10}'),
    "a section follows": (
        '{\n  "bf1|": {\n    "enabled": true\n  }\n}',
        "bf16",
        '{\n  "bf16": {\n    "enabled": true\n  }\n}',
    ),
}

VALUES = {
    "behind a colon": ('{"zero_optimization": {"stage": |}}', "2", '{"zero_optimization": {"stage": 2}}'),
    "right behind a colon": ('{"zero_optimization": {"stage":|}}', "2", '{"zero_optimization": {"stage": 2}}'),
    "no colon": ('{"zero_optimization": {"stage" |}}', "2", '{"zero_optimization": {"stage": 2}}'),
    "no colon before a value": ('{"zero_optimization": {"stage" 3|}}', "2", '{"zero_optimization": {"stage": 2}}'),
    "a comma follows": (
        '{"zero_optimization": {"stage": |, "overlap_comm": true}}',
        "2",
        '{"zero_optimization": {"stage": 2, "overlap_comm": true}}',
    ),
    "the comma behind is missing": (
        '{\n"zero_optimization": {\n"stage": |\n"overlap_comm": true}}',
        "2",
        '{\n"zero_optimization": {\n"stage": 2,\n"overlap_comm": true}}',
    ),
    "before the value": ('{"zero_optimization": {"stage": | 3}}', "2", '{"zero_optimization": {"stage": 2}}'),
    "a bare word": (
        '{"zero_optimization": {"stage": 2, "overlap_comm": tr|}}',
        "true",
        '{"zero_optimization": {"stage": 2, "overlap_comm": true}}',
    ),
    "a bare word that takes the comma": (
        '{\n"zero_optimization": {\n"overlap_comm": tr|,\n"stage": 3}}',
        "true",
        '{\n"zero_optimization": {\n"overlap_comm": true,\n"stage": 3}}',
    ),
    "an open quote": (
        '{"zero_optimization": {"stage": 3, "offload_param": {"device": "c|, "pin_memory": true}}}',
        '"cpu"',
        '{"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu", "pin_memory": true}}}',
    ),
    "between quotes": (
        '{"zero_optimization": {"stage": 3, "offload_param": {"device": "no|ne"}}}',
        '"cpu"',
        '{"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}',
    ),
    "an element": (
        '{"comms_logger": {"prof_ops": ["all_reduce", "se|"]}}',
        '"send"',
        '{"comms_logger": {"prof_ops": ["all_reduce", "send"]}}',
    ),
    "an element before another": (
        '{"comms_logger": {"prof_ops": [se|, "all_reduce"]}}',
        '"send"',
        '{"comms_logger": {"prof_ops": ["send", "all_reduce"]}}',
    ),
    "a type with what it needs": (
        '{"scheduler": {"type": "|"}}',
        '"WarmupCosineLR"',
        '{"scheduler": {"type": "WarmupCosineLR", "params": {"warmup_num_steps": 100, "total_num_steps": 10000}}}',
    ),
    "a section": (
        '{\n  "train_batch_size": 8,\n  "bf16": |\n}',
        "bf16",
        '{\n  "train_batch_size": 8,\n  "bf16": {\n    "enabled": true\n  }\n}',
    ),
}


def one(text: str, label: str, *, snippets: bool = False) -> tuple[str, Item]:
    """Return the text without the mark, and the one item of that label."""
    view, offset = marked(text)
    (found,) = [item for item in complete(view, offset, snippets=snippets) if item.label == label]
    return view.text, found


@pytest.mark.parametrize("case", [*KEYS, *NAMES, *VALUES])
def test_an_accepted_item_leaves_whole_text(case: str) -> None:
    for table in (KEYS, NAMES, VALUES):
        if case in table:
            typed, label, expected = table[case]
            for snippets in (False, True):
                after = accepted(*one(typed, label, snippets=snippets))
                assert after == expected
            assert parse(expected).is_readable


def test_what_is_replaced_lies_around_the_cursor_and_the_comma_elsewhere() -> None:
    text, item = one('{\n    "train_batch_size": 8\n    "ste|"\n}', "steps_per_print")
    assert (text[item.start : item.end], item.new_text) == ('"ste"', '"steps_per_print": 10')
    (comma,) = item.edits
    assert (comma.start, comma.end, comma.text) == (text.index("8") + 1, text.index("8") + 1, ",")


@pytest.mark.parametrize(
    "text",
    [
        '{"train_batch_size": 8}|',
        '{"train_batch_size": 8, // ste|\n}',
        '{"bf16": |{"enabled": true}}',
        '{"bf16": {"enabled": true}|}',
        '{"train_batch_size": 8 | , "bf16": {}}',
        '{"train_batch_size" |: 8}',
        '{"my_own_key": {|}}',
        '{"my.own": {"zero_optimization": {|}}}',
        '{"gradient_clipping": {|}}',
        '{"wall_clock_breakdown": [|]}',
        '["|"]',
        "[[[[[[[[[[[[[[[[{|",
    ],
)
def test_nothing_is_offered_where_nothing_fits(text: str) -> None:
    view, offset = marked(text)
    assert complete(view, offset, snippets=True) == ()
