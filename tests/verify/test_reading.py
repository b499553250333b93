"""From the files of the ranks to a run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.verify.harness.trace import Trace, plain
from dsmigrate.verify.reading import ended, read
from tests.verify.runs import FINISHED

STEP: dict[str, Any] = {
    "losses": [1.0, 0.5],
    "batches": [4, 4],
    "data": [[7, 3.0, 5.0, "float32"], [8, 4.0, 5.0, "int64"]],
    "train": [True],
    "autocast": [],
    "random": 5,
    "carry": None,
    "norm": 2.0,
    "applied": 1.0,
    "limit": 1.0,
    "groups": [{"parameters": 2, "lr": 0.1}],
    "optimizer": "SGD",
    "scale": None,
    "schedulers": 0,
    "skipped": False,
    "outside": 0,
    "seconds": 0.1,
    "overhead": 0.01,
}


def write(folder: Path, rank: int, *, steps: int = 2, **changes: Any) -> Trace:
    trace = Trace(str(folder))
    trace.rank = rank
    trace.write("begin", kind="plain", ranks=2, weights={"w": {"norm": 1.0}})
    for index in range(steps):
        trace.write("step", step=index, **{**STEP, **changes})
    return trace


def test_losses_are_summed_over_backwards_and_averaged_over_ranks(tmp_path: Path) -> None:
    write(tmp_path, 0)
    write(tmp_path, 1, losses=[2.0, 1.5], norm=4.0)
    found = read("original", tmp_path, FINISHED)
    first = found.steps[0]
    assert first.losses == (1.5, 3.5)
    assert first.loss == 2.5
    assert (first.backwards, first.samples) == (2, 16)
    assert (first.norm, first.norms) == (3.0, (2.0, 4.0))
    assert first.rates == (0.1,)
    assert found.setting == {"kind": "plain", "ranks": 2}
    assert found.start.tensors == {"w": {"norm": 1.0}}


def test_only_steps_that_every_rank_has_recorded_count(tmp_path: Path) -> None:
    write(tmp_path, 0, steps=5)
    write(tmp_path, 1, steps=3)
    assert len(read("original", tmp_path, FINISHED).steps) == 3


def test_how_many_steps_each_rank_took_is_kept(tmp_path: Path) -> None:
    write(tmp_path, 0, steps=3)
    write(tmp_path, 1, steps=2)
    assert read("original", tmp_path, FINISHED).taken == (3, 2)


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, 0)
    write(tmp_path, 1)
    file = tmp_path / "rank1.jsonl"
    file.write_text(file.read_text()[:-20])
    assert len(read("original", tmp_path, FINISHED).steps) == 1


def test_numbers_that_json_lacks_come_back(tmp_path: Path) -> None:
    write(tmp_path, 0, losses=[math.nan], norm=math.inf)
    write(tmp_path, 1, losses=[1.0], norm=math.inf)
    json.loads((tmp_path / "rank0.jsonl").read_text().splitlines()[1], parse_constant=pytest.fail)
    first = read("original", tmp_path, FINISHED).steps[0]
    assert math.isnan(first.loss)
    assert first.norm == math.inf


def test_crashes_saves_and_problems_are_told(tmp_path: Path) -> None:
    trace = write(tmp_path, 0)
    trace.write("save", path="last.pt", steps=2)
    trace.write("harness", where="before_clipping", error="Traceback\nValueError: no")
    trace.write("crash", type="KeyError", message="'x'", at="train.py:3")
    write(tmp_path, 1)
    found = read("converted", tmp_path, FINISHED)
    assert found.saves == (2,)
    assert found.problems == ("before_clipping: ValueError: no",)
    assert [crash["at"] for crash in found.crashes] == ["train.py:3"]


def test_a_folder_without_records_is_a_run_without_steps(tmp_path: Path) -> None:
    found = read("converted", tmp_path, FINISHED)
    assert found.steps == ()
    assert not found.is_complete


def test_a_run_has_ended_when_every_rank_says_so(tmp_path: Path) -> None:
    trace = write(tmp_path, 0)
    trace.mark("end")
    assert not ended(tmp_path, 2)
    other = write(tmp_path, 1)
    other.mark("end")
    assert ended(tmp_path, 2)
    assert trace.marked("end", 1)


def test_waiting_for_others_ends_when_they_are_there(tmp_path: Path) -> None:
    trace = write(tmp_path, 0)
    trace.mark("end")
    trace.wait("end", 1, 60.0)
    trace.wait("end", 2, 0.05)


def test_plain_leaves_nothing_that_json_lacks() -> None:
    assert plain({"a": (math.inf, -math.inf, [math.nan]), 1: None}) == {"a": ["inf", "-inf", ["nan"]], "1": None}


def test_the_first_step_counts_neither_for_the_time_of_a_step_nor_for_that_of_measuring(tmp_path: Path) -> None:
    trace = write(tmp_path, 0, steps=0)
    for index, (seconds, overhead) in enumerate([(9.0, 8.0), (0.1, 0.02), (0.3, 0.04)]):
        trace.write("step", **{**STEP, "step": index, "seconds": seconds, "overhead": overhead})
    found = read("original", tmp_path, FINISHED)
    assert (found.seconds, found.overhead) == pytest.approx((0.2, 0.03))
