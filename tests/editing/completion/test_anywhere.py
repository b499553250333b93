"""At every place of every text completion answers, with ranges that a client can use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.editing.completion import complete
from dsmigrate.knowledge import knowledge
from dsmigrate.rules import Settings
from tests.document.texts import GENERAL, NO_CORPUS, almost_config, corpus, jumble, seeded
from tests.editing.completion.configs import SETTINGS, made

pytestmark = pytest.mark.broad

PREFIXES = 40
"""Prefixes of each text that are tried; the end of each is a place of typing."""


def look(text: str, offsets: range | list[int], settings: Settings) -> int:
    """Complete at offsets of a text; return how many items there were."""
    view = View(parse(text), settings)
    count = 0
    for offset in offsets:
        place = min(max(offset, 0), len(text))
        for item in complete(view, offset, snippets=offset % 2 == 0):
            count += 1
            assert 0 <= item.start <= place <= item.end <= len(text)
            assert not {"\n", "\r"} & set(text[item.start : item.end])
            assert all(edit.end <= item.start or edit.start >= item.end for edit in item.edits)
            assert item.data
    return count


@GENERAL
@given(st.integers(), st.sampled_from(SETTINGS))
def test_any_text_can_be_completed_anywhere(seed: int, settings: Settings) -> None:
    random = seeded(seed)
    text = random.choice([jumble, almost_config])(random)
    look(text, range(-1, len(text) + 2), settings)


@GENERAL
@given(st.integers(), st.sampled_from(SETTINGS))
def test_a_config_can_be_damaged_and_cut(seed: int, settings: Settings) -> None:
    random = seeded(seed)
    text = made(seed, 1, knowledge())[0]
    for _ in range(random.randint(0, 6)):
        at = random.randint(0, len(text))
        text = (
            text[:at]
            + random.choice(["", *"{}[],:\"'\n#/\\a1-", "\ud800", "\u2028"])
            + text[at + random.randint(0, 5) :]
        )
    cut = random.randint(0, len(text))
    look(text[:cut], [cut, random.randint(0, cut)], settings)
    look(text, [random.randint(0, len(text)) for _ in range(4)], settings)


@pytest.mark.parametrize(
    "text",
    [
        '{"zero_optimization": {"stage": "two", |}}',
        '{"zero_optimization": [], |}',
        '{"optimizer": 3, "scheduler": [{|}], |}',
        '{"optimizer": {"type": [], "params": {|}}, |}',
        '{"optimizer": {"type": {"a": 1}, "params": {|}}, |}',
        '{"train_batch_size": 1e999, "train_micro_batch_size_per_gpu": -Infinity, |}',
        '{"train_batch_size": NaN, "gradient_accumulation_steps": 0, |}',
        '{"bf16": null, "bfloat16": {"enabled": "auto"}, "bf16": {|}}',
        '{"\\ud800": {|}, "fp16": {"enabled": "\\ud800"}, |}',
        '{"data_efficiency": {"data_sampling": {"curriculum_learning": {"curriculum_metrics": [|]}}}}',
        '{"tensor_parallel": {"partition_config": {"layer_specs": {|}}}}',
        "\ufeff{|}",
        "\ufeff|",
    ],
)
def test_wrong_values_are_no_obstacle(text: str) -> None:
    for settings in SETTINGS:
        look(text.replace("|", ""), range(len(text)), settings)


def test_deep_nesting_is_no_obstacle() -> None:
    deep = 10_000
    for text in ('{"a":' * deep, "[" * deep, '{"zero_optimization": {"stage": ' + '{"a": [' * deep):
        assert look(text, [len(text), len(text) // 2], Settings()) == 0


@pytest.mark.skipif(not corpus(), reason=NO_CORPUS)
def test_every_place_of_every_real_config() -> None:
    count = 0
    for number, text in enumerate(corpus().values()):
        settings = SETTINGS[number % len(SETTINGS)]
        count += look(text, range(len(text) + 1), settings)
        random = seeded(number)
        for _ in range(PREFIXES):
            cut = random.randint(0, len(text))
            count += look(text[:cut], [cut], settings)
    print(f"items at every place: {count}")
    assert count > 500_000
