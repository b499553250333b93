"""The generator and the measures themselves: repeatable, and able to see a difference."""

from __future__ import annotations

import json
import random

from dsmigrate.knowledge import knowledge

from . import compare, faults, report, silent, slips
from .case import Case, Planted
from .generate import cases
from .judging import Answer, judged, worlds


def test_the_same_seed_gives_the_same_configs() -> None:
    first, again, other = (list(cases(60, seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_every_config_is_json_and_every_kind_of_fault_is_planted() -> None:
    made = list(cases(1500, 0))
    assert all(json.loads(case.written) == case.config for case in made if case.text is None)
    kinds = {fault.kind for case in made for fault in case.planted}
    assert {fault.__name__ for fault in faults.FAULTS if fault.__doc__ is None} <= {"plant"}
    assert len(kinds) > 35
    assert sum(not case.planted for case in made) > 150
    assert any(len(case.planted) == 3 for case in made)


def test_every_fault_can_be_planted() -> None:
    rng = random.Random(0)  # noqa: S311 - repeatable on purpose
    for fault in faults.FAULTS:
        if fault is faults.newer_key:
            continue  # the newest release has none
        tried = [fault(faults.Bench(rng, knowledge(), {"optimizer": {"params": {"lr": 1}}})) for _ in range(20)]
        assert any(tried), fault


def test_a_fault_that_nobody_reports_is_missed() -> None:
    missed = compare.row(Case("x", {"train_batch_size": 8}), Answer("config", "ValueError: something"))
    assert (missed.outcome, report.rates([missed]).found) == (compare.MISSED, 0)


def test_an_error_on_another_key_does_not_count() -> None:
    case = Case("x", {"train_batch_size": 8, "amp": {"enabled": True}}, planted=(Planted("k", ("bf16",), "keys"),))
    assert compare.row(case, Answer("config", "ValueError: something")).outcome == compare.ELSEWHERE
    assert compare.row(case, Answer("config", "DeepSpeedConfigError: amp is gone")).outcome == compare.AGREED


def test_a_rejection_that_deepspeed_does_not_share_is_a_false_alarm() -> None:
    case = Case("x", {"train_batch_size": 8, "amp": {"enabled": True}})
    row = compare.row(case, Answer("accepted"))
    assert (row.outcome, row.family, row.what) == (compare.FALSE_ALARM, "keys", "DS110 removed-key")


def test_errors_of_this_machine_are_no_verdict() -> None:
    assert judged("engine", "ModuleNotFoundError: No module named 'wandb'").verdict == "unjudged"
    assert judged("config", "ValidationError: 1 validation error").verdict == "config"


def test_an_unknown_number_of_processes_tries_one_that_fits_first() -> None:
    config = {"train_batch_size": 384, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 16}
    assert worlds(Case("x", config, None))[0] == 3
    assert worlds(Case("x", config, 5)) == [5]


def test_slips_are_reported_with_the_right_key_first() -> None:
    planted, _ = silent.planted(seed=1)
    told = silent.judge(random.Random(0).sample(planted, 300))  # noqa: S311
    assert {one.slip.kind for one in told} == {*slips.KINDS, slips.PARENT}
    assert sum(one.right for one in told) >= 0.99 * len(told), [one for one in told if not one.right]
