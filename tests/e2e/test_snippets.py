"""Every starter that completion offers, in front of the real DeepSpeed: whole files, and sections in a small file.

It reads the config, builds an engine and takes a step, as far as one process without a GPU can.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from dsmigrate.facts.sources import read
from dsmigrate.knowledge import knowledge
from dsmigrate.knowledge.versions import order
from tests.rules.agreement.case import Case
from tests.rules.agreement.judging import judge
from tests.schemas.support import FOLDER

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e]

Config = dict[str, Any]
SMALL: Config = {"train_micro_batch_size_per_gpu": 2, "gradient_clipping": 1.0}
NOT_ALONE = {
    "needs more processes",
    "needs a cluster",
    "needs another model",
    "needs a compiled kernel or a GPU",
    "needs a package that is not installed",
}
"""Why one process on a CPU may not judge an engine; it still reads the config."""


def starters() -> Iterator[tuple[str, Config, bool]]:
    """Yield name, config, and whether plain DeepSpeed reads it as it is."""
    snippets = read(FOLDER).snippets
    for label, starter in snippets["files"].items():
        yield label, starter["config"], "consumer" not in starter
    for path, every in snippets["sections"].items():
        for label, starter in every.items():
            if "until" not in starter or order(knowledge().version) < order(starter["until"]):
                yield f"{path}: {label}", placed(path, starter), True


def placed(path: str, starter: Config) -> Config:
    """Return a small file that holds a section at its path, and what the section needs beside it."""
    config = copy.deepcopy(SMALL | starter.get("with", {}))
    names = path.replace("*", "seqlen").split(".")
    place = config
    for name in names[:-1]:
        place = place.setdefault(name, {})
    place[names[-1]] = copy.deepcopy(starter["value"])
    return config


def test_deepspeed_reads_every_starter() -> None:
    cases = [Case(name, config, None) for name, config, plain in starters() if plain]
    answers = judge(cases, deep=False)
    wrong = {
        case.name: (answer.verdict, answer.error)
        for case, answer in zip(cases, answers, strict=True)
        if answer.verdict != "accepted"
    }
    assert wrong == {}
    assert len(cases) >= 55


def test_deepspeed_trains_with_every_starter() -> None:
    cases = [Case(name, config, None) for name, config, plain in starters() if plain]
    answers = judge(cases)
    wrong = {
        case.name: (answer.verdict, answer.error)
        for case, answer in zip(cases, answers, strict=True)
        if answer.verdict != "accepted" and answer.reason not in NOT_ALONE
    }
    unjudged = {case.name: answer.reason for case, answer in zip(cases, answers, strict=True) if answer.reason}
    print(f"trained: {len(cases) - len(wrong) - len(unjudged)}, read only: {unjudged}")
    assert wrong == {}
    assert len(unjudged) < len(cases) / 4
