"""Pairs of configs as the judge is asked, and what its answers say of a comparison."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsmigrate.diff import Result, compare_views
from dsmigrate.diff.model import Severity
from dsmigrate.document import Document, parse
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Consumer, knowledge
from dsmigrate.rules import Facts, Settings
from tests.schemas.judge import COMPUTED, FILLS, fillable, filled, world

from .launching import torch_python, training_environment

JUDGE = Path(__file__).with_name("diff_judge.py")
AUTO = "DF120"
"""The explanation of a value that the consumer begins or ceases to decide."""
WRITTEN: dict[str, Any] = {"steps_per_print": 1_000_000, "zero_allow_untested_optimizer": True}
"""What a consumer writes whatever the file says."""
MICRO = "train_micro_batch_size_per_gpu"
BATCH = ("train_batch_size", MICRO)
OTHERWISE: dict[str, Any] = {"fp16.enabled": True, "bf16.enabled": True, "zero_optimization.stage": 1}
"""What a consumer fills in where the other side happens to hold the usual value."""


@dataclass(frozen=True, slots=True)
class Case:
    """Two texts, and who reads them; ``adds_batch`` says that a script adds a batch size where neither has one."""

    name: str
    old: str
    new: str
    consumer: Consumer = Consumer.DEEPSPEED
    adds_batch: bool = False

    @property
    def world(self) -> int:
        """The number of processes that fits one of the sides, or both."""
        sides = [filled(data) for data in (_data(self.old), _data(self.new)) if isinstance(data, dict)]
        return max((world(data) for data in sides), default=1)

    def compared(self) -> Result:
        """Return the comparison."""
        settings = Settings(consumer=self.consumer, facts=Facts(world_size=self.world))
        return compare_views(View(parse(self.old), settings), View(parse(self.new), settings))

    def asked(self) -> list[dict[str, Any]]:
        """Return what the judge is asked about both sides.

        "auto" on both sides is one value; on one side it is another value than the other side has, as it may be.
        """
        sides = _data(self.old), _data(self.new)
        strict = self.consumer is not Consumer.DEEPSPEED
        asked = []
        for own, other, text in ((*sides, self.old), (*sides[::-1], self.new)):
            fills = {path: _fill(path, _at(other, path)) for path in fillable() if strict and _at(own, path) == "auto"}
            puts = {path: _fill(path, _at(other, path)) for path in self._put(own)} if strict else {}
            if self.adds_batch and not any(_at(side, key) for side in sides for key in BATCH):
                puts[MICRO] = 1
            if {"fp16.enabled": _at(own, "fp16.enabled") is True, **fills, **puts}["fp16.enabled"]:
                fills["bf16.enabled"] = False
                puts |= {"bf16.enabled": False} if "bf16.enabled" in puts else {}
            if _at(own, "bf16.enabled") is True:
                puts |= {"fp16.enabled": False} if "fp16.enabled" in puts else {}
                fills["fp16.enabled"] = False
            asked.append({"text": text, "world": self.world, "fills": fills, "puts": puts, "strict": strict})
        return asked

    def _put(self, data: Any) -> Iterator[str]:
        """Yield the paths that the consumer writes whatever a side says, or for want of their section."""
        for path in (*fillable(), *WRITTEN):
            auto = knowledge().auto(path, self.consumer)
            if auto is None or not isinstance(data, dict):
                continue
            overwritten = auto.overwrites and not (auto.unless and auto.unless in data)
            if overwritten or (auto.adds_section and path.partition(".")[0] not in data):
                yield path


@dataclass(frozen=True, slots=True)
class Judged:
    """A case with its comparison, and which parts of DeepSpeed's config differ; errors where a side does not load."""

    case: Case
    result: Result
    errors: tuple[str, str]
    parts: tuple[str, ...]

    @property
    def kind(self) -> str:
        """What DeepSpeed makes of the pair: equal, differs, rejected (one side) or both rejected."""
        if all(self.errors):
            return "both rejected"
        if any(self.errors):
            return "rejected"
        return "differs" if self.parts else "equal"

    @property
    def agrees(self) -> bool:
        """Whether the comparison says no semantic change of no other than an equal pair, and nothing acts in such.

        That the consumer decides a value now is no such thing: the judge may happen to fill in the one of before.
        """
        if self.kind == "equal":
            return all(one.severity is Severity.NONE or one.code == AUTO for one in self.result.explained)
        return self.kind == "both rejected" or not self.result.is_same

    def __str__(self) -> str:
        said = "; ".join(f"{one.severity.value} {one.code} {one.message}" for one in self.result.explained)
        return f"{self.case.name}: {self.kind} {self.errors} {self.parts}: {self.result.verdict}: {said}"


def judge(cases: Sequence[Case]) -> list[Judged]:
    """Return the cases with what DeepSpeed makes of them."""
    asked = [one for case in cases for one in case.asked()]
    child = subprocess.run(
        [torch_python(), str(JUDGE)],
        input="".join(json.dumps(one) + "\n" for one in asked),
        capture_output=True,
        text=True,
        env=training_environment(),
        check=False,
    )
    answers = [json.loads(line) for line in child.stdout.splitlines()]
    if len(answers) != len(asked):
        raise RuntimeError(f"{torch_python()} does not judge configs: {child.stderr[-2000:]}")
    found = []
    for case, old, new in zip(cases, answers[::2], answers[1::2], strict=True):
        errors = old.get("error", ""), new.get("error", "")
        parts = () if any(errors) else _differing(old["parts"], new["parts"])
        found.append(Judged(case, case.compared(), errors, parts))
    return found


def rates(judged: Iterable[Judged]) -> str:
    """Return the two rates: of "no semantic change" that is one, and of equal pairs in which nothing is said to act."""
    every = list(judged)
    kinds = {kind: sum(one.kind == kind for one in every) for kind in ("equal", "differs", "rejected", "both rejected")}
    same = [one for one in every if one.result.is_same and one.kind != "both rejected"]
    equal = [one for one in every if one.kind == "equal"]
    right = sum(one.kind == "equal" for one in same)
    quiet = sum(one.agrees for one in equal)
    return (
        f"{len(every)} pairs {kinds}: no semantic change {right}/{len(same)} equal,"
        f" equal {quiet}/{len(equal)} without a change that acts"
    )


def _differing(old: dict[str, str], new: dict[str, str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name)))


def _data(text: str) -> Any:
    document: Document = parse(text)
    return None if document.root is None else document.root.value()


def _at(data: Any, path: str) -> Any:
    for name in path.split("."):
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _fill(path: str, other: Any) -> Any:
    if path in WRITTEN:
        return WRITTEN[path]
    if path == COMPUTED:
        return None
    usual = FILLS[path]
    if other == "auto" or path.endswith("_path"):
        return usual
    if path in OTHERWISE:
        return usual if other == OTHERWISE[path] else OTHERWISE[path]
    if isinstance(usual, bool):
        return not other
    if isinstance(usual, (int, float)):
        return usual if other not in {None, usual} else usual + 1
    return [0.5, 0.5] if isinstance(usual, list) else "cpu" if other != "cpu" else "none"
