"""What is made of an example, a rule and the answers of a release, without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.rules import every_rule

from . import history
from .history import Outcome
from .judging import Answer

TAKEN, REFUSED, STEP = Answer("accepted"), Answer("config", "ValueError: no"), Answer("step", "TypeError: no")


def asked(code: str, release: str) -> history.Asked:
    return next(one for one in history.examples(release, (code,)) if one.case.name == f"{code}-0")


@pytest.mark.parametrize(
    ("code", "release", "before", "after", "outcome"),
    [
        ("DS340", "0.19.8", REFUSED, TAKEN, Outcome.AGREES),
        ("DS340", "0.19.8", TAKEN, TAKEN, Outcome.FALSE_ALARM),
        ("DS340", "0.16.9", TAKEN, None, Outcome.AGREES),
        ("DS340", "0.16.9", REFUSED, None, Outcome.MISSED),
        ("DS340", "0.16.9", STEP, None, Outcome.STEP_MISSED),
        ("DS340", "0.19.8", REFUSED, REFUSED, Outcome.BAD_FIX),
        ("DS265", "0.19.8", TAKEN, TAKEN, Outcome.STEP_PASSES),
        ("DS422", "0.19.8", TAKEN, REFUSED, Outcome.SPOILT),
        ("DS340", "0.19.8", Answer("unjudged"), TAKEN, Outcome.UNJUDGED),
    ],
)
def test_what_is_said_and_what_a_release_says_go_together_or_not(
    code: str, release: str, before: Answer, after: Answer | None, outcome: Outcome
) -> None:
    assert history._outcome(asked(code, release), before, after) is outcome


def test_a_cell_says_how_it_was_judged() -> None:
    def told(code: str, outcome: Outcome, release: str = "0.19.8") -> list[history.Told]:
        return [history.Told(asked(code, release), TAKEN, None, outcome)]

    assert history.cell(told("DS340", Outcome.MISSED), same=True) == "x"
    assert history.cell(told("DS340", Outcome.AGREES), same=None) == "R"
    assert history.cell(told("DS340", Outcome.AGREES, "0.16.9"), same=False) == "-"
    assert [history.cell(told("DS422", Outcome.AGREES), same) for same in (True, False, None)] == ["s", "d", "?"]
    assert history.cell(told("DS422", Outcome.AGREES), same=False, lines=True) == "l"


def test_code_is_compared_without_comments_and_by_symbol(tmp_path: Path) -> None:
    rule = next(rule for rule in every_rule() if rule.code == "DS340")  # deepspeed/runtime/engine.py:_do_…
    texts = ("a = 1", "a = 1  # the same", "a = 2")
    for number, text in enumerate(texts):
        path = tmp_path / str(number) / "deepspeed" / "runtime" / "engine.py"
        path.parent.mkdir(parents=True)
        path.write_text(
            f"class E:\n    def _do_optimizer_sanity_check(self):\n        {text}\nother = {number}\n", "utf-8"
        )
    same = [history.is_same(rule, tmp_path / str(number), tmp_path / "0") for number in range(3)]
    assert same == [True, True, False]


def test_the_last_release_of_each_minor_version_is_taken() -> None:
    assert history.minors(["0.9.0", "0.9.5", "0.10.0", "0.10.2", "0.11.0"]) == ["0.9.5", "0.10.2", "0.11.0"]


def test_lines_are_looked_for_in_the_sources(tmp_path: Path) -> None:
    path = tmp_path / "deepspeed" / "runtime" / "lr_schedules.py"
    path.parent.mkdir(parents=True)
    path.write_text("self.warmup_num_steps = max(2, warmup_num_steps)", encoding="utf-8")
    found = history.signed({"0.9.5": tmp_path})
    assert found["DS738"] == {"0.9.5"}
    assert found["DS745"] == set()
    codes = {rule.code for rule in every_rule()}
    assert found.keys() <= codes
