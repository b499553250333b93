"""The eyes of the end-to-end tests: what they read and what they call the same."""

from __future__ import annotations

import pytest

from .readings import Tolerance, compare, joined, read


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("step 12 loss 0.123456789", (("loss", 0.123456789),)),
        ("Epoch: [0][3/8]\tLoss 1.250000000\tAcc@1  50.00", (("loss", 1.25),)),
        ("{'epoch': 1, 'loss': 2.5e-03, 'lr': 0.1}", (("loss", 0.0025), ("lr", 0.1))),
        ('{"eval_loss": 1.5}', (("eval_loss", 1.5),)),
        ("| loss 3.25 | gnorm 0.5 | clipped 3", (("loss", 3.25), ("gnorm", 0.5))),
        ("lr: 0.002  loss: 2.9  loss_ce: 1.7", (("lr", 0.002), ("loss", 2.9), ("loss_ce", 1.7))),
        ("loss nan", (("loss", float("nan")),)),
        ("epoch=0 micro=1 loss=-1.5", (("loss", -1.5),)),
    ],
)
def test_a_line_with_a_loss_is_read(line: str, values: tuple[tuple[str, float], ...]) -> None:
    (reading,) = read(line)
    assert str(reading.values) == str(values)


@pytest.mark.parametrize(
    "line",
    [
        "lr 0.1",
        "[2026-01-02 03:04:05,678] [INFO] [engine.py:1:f] loss 1.5",
        "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
        "  loss_scale ................... 1.0",
    ],
)
def test_a_line_without_a_loss_of_the_script_is_passed_over(line: str) -> None:
    assert read(line) == ()


def _differences(before: str, after: str) -> tuple[str, ...]:
    return compare(read(before), read(after), Tolerance(first=1e-6, loss=1e-5, norm=1e-4, lr=1e-7)).differences


def test_equal_runs_agree_whatever_the_clock_says() -> None:
    before = "12:00:00,123 step 1 loss 1.5 time 3.25ms\nstep 2 loss nan\nstep 3 loss 1.000005"
    after = "13:01:02,456 step 1 loss 1.5000001 time 4.75ms\nstep 2 loss nan\nstep 3 loss 1.00001"
    assert _differences(before, after) == ()


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ("step 1 loss 1.5", "step 1 loss 1.500003", "1.500003"),
        ("step 1 loss 1.5\nstep 2 loss 1.5", "step 1 loss 1.5\nstep 2 loss 1.5001", "1.5001"),
        ("step 1 loss 1.5", "step 1 loss nan", "nan"),
        ("step 1 loss 1.5 lr 0.1", "step 1 loss 1.5 lr 0.2", "lr"),
        ("step 1 loss 1.5", "step 2 loss 1.5", "step 2"),
        ("step 1 loss 1.5\nstep 2 loss 1.5", "step 1 loss 1.5", "2 lines with a loss became 1"),
    ],
)
def test_a_difference_is_named(before: str, after: str, word: str) -> None:
    (difference,) = _differences(before, after)
    assert word in difference


def test_a_line_that_the_continuation_repeats_counts_once() -> None:
    first, second = read("step 1 loss 3.5\neval 1 loss 2.5"), read("eval 1 loss 2.25\nstep 2 loss 1.5")
    assert joined(first, second) == read("step 1 loss 3.5\neval 1 loss 2.25\nstep 2 loss 1.5")


def test_a_continuation_that_starts_from_scratch_is_not_taken_for_one() -> None:
    first = read("step 1 loss 3.5\nstep 2 loss 2.5")
    assert len(joined(first, read("step 1 loss 3.5\nstep 2 loss 2.5\nstep 3 loss 1.5"))) == 5
