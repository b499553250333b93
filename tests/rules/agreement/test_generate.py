"""The generator and the measures themselves: repeatable, and able to see a difference."""

from __future__ import annotations

import json
import random

from dsmigrate.knowledge import knowledge
from dsmigrate.rules import Settings, every_rule

from . import compare, faults, report, silent, slips
from .bench import Bench
from .case import Case, Planted
from .generate import cases
from .judging import Answer, judged, worlds
from .plantings import plantings

NOT_PLANTED = {
    "DS001": "a fault of the text",
    "DS002": "a fault of the text",
    "DS003": "a fault of the text",
    "DS010": "a fault of the text",
    "DS105": "the newest release knows every key",
    "DS116": "the newest release requires no key by its name",
    "DS140": "the schemas of a project are not in the file",
    "DS228": "the model is not in the file",
    "DS304": "the hardware is not in the file",
    "DS425": "neither the memory nor the model is in the file",
    "DS473": "the model is not in the file",
    "DS487": "the number of processes is not in the file",
    "DS533": "the model is not in the file",
    "DS826": "Lightning is not in the file",
    "DS828": "the launch line is not in the file",
    "DS950": "the release before is not in the file",
    "DS960": "the memory is not in the file",
    "DS962": "the memory is not in the file",
    "DS966": "neither the memory nor the model is in the file",
    "DS970": "the newest release has none that a config meets",
}
"""Rules without an example that plain DeepSpeed of the newest release could be given, and why."""


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
        tried = [fault(Bench(rng, knowledge(), {"optimizer": {"params": {"lr": 1}}})) for _ in range(20)]
        assert any(tried), fault


def test_every_key_can_be_planted() -> None:
    known = knowledge()
    for path in known.every_path():
        bench = Bench(random.Random(0), known, {})  # noqa: S311
        placed = bench.put(path, 1)
        assert placed is not None
        assert bench.get(placed) == bench.get(path) == 1
        names = [int(name) if name.isdigit() else name for name in placed.split(".")]
        assert known.key(names) is known.key(path) or known.canonical(names) == known.canonical(path)


def test_every_rule_can_be_planted() -> None:
    known = knowledge()
    planted = {planting.code for planting in plantings(known.version)}
    asked = {rule.code for rule in every_rule() if Settings(version=known.version).takes(rule)}
    assert asked - planted == NOT_PLANTED.keys()


def test_an_example_is_laid_over_a_config() -> None:
    assert faults.laid_over({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}) == {"a": 1, "b": {"c": 2, "d": 3}}
    assert faults.laid_over({"b": {"c": 2}}, {"b": []}) == {"b": []}


def test_a_crash_that_takes_more_than_one_step_on_a_cpu_is_told_apart() -> None:
    offload = {"train_batch_size": 8, "zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}}
    beyond = compare.row(Case("x", offload), Answer("accepted"))
    assert (beyond.outcome, beyond.what) == (compare.BEYOND, "weights on a GPU")
    within = compare.row(Case("x", {"train_batch_size": 8, "steps_per_print": 0}), Answer("accepted"))
    assert within.outcome == compare.STEP_PASSES
    both = compare.row(Case("x", offload | {"steps_per_print": 0}), Answer("accepted"))
    assert both.outcome == compare.STEP_PASSES
    assert list(report.beyond([beyond, within])) == ["    1  weights on a GPU: DS510"]


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
