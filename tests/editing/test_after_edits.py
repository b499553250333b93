"""What is found after edits is what is found in the same text from scratch, fixes included."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsmigrate.document import parse
from dsmigrate.editing import View
from dsmigrate.editing.hover import hover_at
from dsmigrate.knowledge import Consumer, knowledge
from dsmigrate.rules import Settings
from tests.document.texts import GENERAL, NO_CORPUS, almost_config, corpus, seeded
from tests.editing.completion.configs import made

PIECES = (
    *('"', "{", "}", "[", "]", ",", ":", "\n", " ", "1", "-", "true", '"auto"', "// note\n", "'''", "x"),
    *('"fp16": {"enabled": true},', '"stage": 3,', '"zero_optimizaton": {},', '"a": [{"b": 1}],', '"overlap_com": 1,'),
)
"""What is put in: signs that change how the rest reads, and members with something to say about them."""


def edit_and_compare(text: str, chance: random.Random, settings: Settings, edits: int) -> None:
    document = parse(text)
    for _ in range(edits):
        start = chance.randint(0, len(document.text))
        end = min(len(document.text), start + chance.choice((0, 0, 0, 1, 1, 4, 20)))
        document = document.edit(start, end, chance.choice(("", *PIECES)))
        edited, fresh = View(document, settings), View(parse(document.text), settings)
        assert edited.findings == fresh.findings, document.text
        assert [finding.fixes for finding in edited.findings] == [finding.fixes for finding in fresh.findings]
        place = chance.randint(0, len(document.text))
        assert hover_at(edited, place) == hover_at(fresh, place), (document.text, place)


@pytest.mark.broad
@GENERAL
@given(st.integers(), st.sampled_from(Consumer))
def test_edits_of_made_configs(seed: int, consumer: Consumer) -> None:
    chance = seeded(seed)
    text = made(seed, 1, knowledge())[0] if chance.random() < 0.7 else almost_config(chance)
    edit_and_compare(text, chance, Settings(consumer=consumer), 6)


@pytest.mark.slow
@pytest.mark.skipif(not corpus(), reason=NO_CORPUS)
def test_edits_of_real_configs() -> None:
    chance = seeded(7)
    for text in corpus().values():
        edit_and_compare(text, chance, Settings(), 3)
