"""The rules against the real DeepSpeed: generated configs, and real ones.

``DSMIGRATE_CORPUS`` names a folder of real configs, ``DSMIGRATE_TORCH_PYTHON`` the interpreter that has deepspeed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dsmigrate.derivation.index import UnreachableError
from dsmigrate.knowledge import knowledge
from tests.rules.agreement import compare, corpus, releases, report
from tests.rules.agreement.case import Case
from tests.rules.agreement.generate import cases
from tests.rules.agreement.judging import judge

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e]

COUNT = 2000
FOUND = 0.98
FALSE_ALARMS = 0.005


def show(rows: list[compare.Row]) -> str:
    """Return the rates and the differences, for the output of a failing test."""
    return "\n".join([str(report.rates(rows)), *report.differences(rows, notes=False)])


def test_the_judge_tells_how_far_deepspeed_comes() -> None:
    base = {"train_batch_size": 8}
    sgd = {"type": "SGD", "params": {"lr": 0.1}}
    told = {
        "accepted": base | {"zero_optimization": {"stage": 3}, "fp16": {"enabled": True}},
        "config": base | {"zero_optimization": {"stage": 4}},
        "engine": base | {"zero_optimization": {"stage": 1}, "optimizer": sgd},
        "step": base | {"optimizer": sgd, "gradient_clipping": "1.0"},
        "unjudged": base | {"aio": {"use_gds": True}},
    }
    answers = judge([Case(verdict, config, 8) for verdict, config in told.items()])
    assert [answer.verdict for answer in answers] == list(told)


def test_a_judge_that_ends_is_started_again() -> None:
    autotuning = {"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.1}}}
    answers = judge(
        [Case("text", None, 1, text="{"), Case("fine", autotuning, 1), Case("no object", None, 1, text="[]")]
    )
    assert [answer.verdict for answer in answers] == ["config", "accepted", "config"]


@pytest.mark.derivation
def test_a_release_under_stubs_judges_like_the_real_one() -> None:
    newest = knowledge().version
    try:
        root = releases.sources().root(newest)
    except UnreachableError as error:
        pytest.skip(str(error))
    asked = [case for case in cases(COUNT, seed=6) if case.text is None]
    stubs = [answer.verdict == "accepted" for answer in releases.judge(root, asked)]
    real = [answer.verdict == "accepted" for answer in judge(asked, deep=False)]
    differing = [case for case, here, there in zip(asked, stubs, real, strict=True) if here is not there]
    assert [case for case in differing if "use_gds" not in case.written] == []


def test_rules_and_deepspeed_agree_on_generated_configs() -> None:
    rows = compare.examine(list(cases(COUNT, seed=4)))
    rates = report.rates(rows)
    print(show(rows))
    assert rates.rejected > COUNT / 3
    assert rates.accepted > COUNT / 8
    assert rates.unjudged < COUNT / 8
    assert not [row for row in rows if row.outcome == compare.CRASHED], show(rows)
    assert rates.found_share >= FOUND, show(rows)
    assert rates.false_alarms <= FALSE_ALARMS * rates.accepted, show(rows)


def test_rules_and_deepspeed_agree_on_real_configs() -> None:
    folder = os.environ.get("DSMIGRATE_CORPUS")
    if folder is None:
        pytest.skip("DSMIGRATE_CORPUS names no folder of real configs")
    rows = compare.examine(list(corpus.cases(Path(folder))), corpus.answers)
    print(show(rows))
    assert [row.case.name for row in compare.disagreements(rows)] == []
