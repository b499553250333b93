"""When a run is made a second time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsmigrate.verify.device import Device
from dsmigrate.verify.model import Ending, Outcome, Run
from dsmigrate.verify.request import Request
from dsmigrate.verify.trial import Scene, Trials
from tests.verify.runs import converted

RESET = "RuntimeError: [/src/gloo/transport/tcp/pair.cc:537] Read error: Connection reset by peer."
TAKEN = "RuntimeError: The server socket has failed to listen (EADDRINUSE)"


def crashed(*tails: str, steps: int = 3) -> Run:
    return converted(outcome=Outcome(Ending.CRASHED, "torchrun train.py", (1, 1), tails), steps=steps)


@pytest.mark.parametrize(
    ("first", "runs"),
    [
        (crashed(RESET, RESET, steps=0), 2),
        (crashed(TAKEN, "", steps=0), 2),
        (crashed(RESET, "ZeroDivisionError: division by zero", steps=0), 1),
        (crashed(RESET, RESET), 1),
        (converted(), 1),
    ],
    ids=["lost", "port taken", "failed", "after some steps", "whole"],
)
def test_what_the_network_broke_before_the_first_step_is_tried_again(
    first: Run, runs: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = [first, converted()]
    ports: list[int] = []

    def run(_: Trials, __: str, ___: Scene, port: int, **____: Any) -> Run:
        ports.append(port)
        return found[len(ports) - 1]

    monkeypatch.setattr(Trials, "_run", run)
    trials = Trials(Request(tmp_path / "train.py"), "python", Device(cpu=True, pretend=False, why=""), tmp_path)
    assert trials.run("original", Scene(tmp_path, "train.py", tmp_path), arguments=()) is found[runs - 1]
    assert len(ports) == runs
