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

COUNT = 1000
KNOWN: dict[str, str] = {}
"""Cases on which the rules and DeepSpeed are left to differ, by name, and why; of 2 × 20 000 there was none."""


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


def test_what_is_up_to_the_script_is_tried() -> None:
    base: dict[str, object] = {"train_batch_size": 8}

    def rates(**params: object) -> dict[str, object]:
        return base | {"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.1, "cycle_max_lr": 0.2} | params}}

    half = {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}
    asked = [
        (rates(cycle_min_lr=[0.1, 0.01]), "accepted"),  # two parameter groups
        (rates(cycle_min_lr=[0.1, 0.01], cycle_max_lr=[1, 2, 3]), "engine"),
        (rates(cycle_min_lr=[]), "engine"),
        (rates(cycle_min_mom=[]), "accepted"),  # an optimizer without betas
        (rates(cycle_min_mom=[]) | {"optimizer": {"type": "AdamW", "params": {}}}, "engine"),
        (rates(cycle_second_stair_count="x"), "step"),  # the second half of the cycle
        (base | {"bf16": half, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}, "accepted"),
        (base | {"optimizer": {"type": "AdamW", "params": {"lr": None}}}, "step"),
    ]
    answers = judge([Case(str(index), config, 1) for index, (config, _) in enumerate(asked)])
    assert [answer.verdict for answer in answers] == [verdict for _, verdict in asked]


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
    asked = [case for case in cases(COUNT // 2, seed=6) if case.text is None]
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
    left = [row for row in compare.disagreements(rows) if row.case.name not in KNOWN]
    assert not left, show(rows)


def test_rules_and_deepspeed_agree_on_real_configs() -> None:
    folder = os.environ.get("DSMIGRATE_CORPUS")
    if folder is None:
        pytest.skip("DSMIGRATE_CORPUS names no folder of real configs")
    rows = compare.examine(list(corpus.cases(Path(folder))), corpus.answers)
    print(show(rows))
    assert [row.case.name for row in compare.disagreements(rows)] == []
