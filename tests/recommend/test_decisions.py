"""The list of what to do if: every key exists, every condition can hold, and releases without a key leave it out."""

from __future__ import annotations

import pytest

from dsmigrate.knowledge import knowledge
from dsmigrate.memory.variants import HALVES, VARIANTS, Variant
from dsmigrate.recommend.decisions import conditions, listed, topics


def test_every_key_of_a_step_is_one() -> None:
    known = knowledge()
    for title, _, steps in listed():
        for _, keys in steps:
            for key in keys:
                assert known.key(key) is not None or key.startswith("optimizer."), (title, key)


def test_every_condition_can_hold_and_all_topics_are_shown_somewhere() -> None:
    possible = {one for variant in VARIANTS for half in HALVES for one in conditions(variant, half)}
    for title, when, steps in listed():
        assert set(when) <= possible, title
        assert steps


@pytest.mark.parametrize(
    ("variant", "half", "there", "not_there"),
    [
        (Variant(3), "bf16", "Stage 3 is slower than stage 2", "Slow with offload"),
        (Variant(2, "cpu"), "fp16", "NaN, or a loss scale that falls to its minimum", "Stage 3 is slower than stage 2"),
        (Variant(3, "nvme"), "bf16", "Slow with NVMe", "Slow at stage 1 or 2"),
    ],
)
def test_topics_are_those_of_the_choice(variant: Variant, half: str, there: str, not_there: str) -> None:
    titles = [topic.title for topic in topics(variant, half, knowledge())]
    assert titles[0] == "Out of GPU memory"
    assert there in titles
    assert not_there not in titles


def test_keys_lead_to_their_pages_in_releases_that_have_them() -> None:
    new, old = (
        {key for one in topics(Variant(3), "bf16", knowledge(version)) for step in one.steps for key, _ in step.links}
        for version in (None, "0.9.5")
    )
    assert "bf16.check_grad_overflow" in new - old
    urls = [url for one in topics(Variant(3), "bf16", knowledge()) for step in one.steps for _, url in step.links]
    assert any(url.endswith("/keys/zero_optimization.md#zero_optimizationstage3_max_live_parameters") for url in urls)
