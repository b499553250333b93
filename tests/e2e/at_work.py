"""Keys where DeepSpeed's engine uses them: a config in which a key is at work, and how far the engine comes with it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsmigrate.knowledge import MISSING, Key

from .launching import free_port, torch_python, training_environment
from .situations.working import SITUATIONS, Config

ROOT = Path(__file__).resolve().parents[2]


BESIDE: dict[str, dict[str, Sequence[object]]] = {
    "tensor_parallel.partition_config.layer_specs[].gather_output": {
        "tensor_parallel.partition_config.layer_specs[].shape": [None]
    },
    "autotuning.min_train_micro_batch_size_per_gpu": {"train_micro_batch_size_per_gpu": [64]},
}
"""What a key needs beside what its facts and its situation say."""


@dataclass(frozen=True, slots=True)
class Case:
    """A config, and the situation in which it is judged; "" is the plain engine of rule_judge.py."""

    situation: str
    config: Config


def situation_of(path: str) -> str:
    """Return the situation that brings DeepSpeed to read a key; "" where a config alone does."""
    fitting = [(len(start), name) for name, it in SITUATIONS.items() for start in it.keys if path.startswith(start)]
    return max(fitting, default=(0, ""))[1]


def at_work(key: Key, value: object) -> Case:
    """Return a config that holds ``value`` at a key, and beside it all that the key needs to do anything.

    MISSING leaves the key as the working config has it.
    """
    name = situation_of(key.path)
    config: Config = {"train_micro_batch_size_per_gpu": 1}
    config |= json.loads(json.dumps(SITUATIONS[name].config if name else {}))
    one_of = key.effective_when_any[0] if key.effective_when_any and not name else {}
    for path, values in {**key.effective_when, **one_of, **BESIDE.get(key.path, {})}.items():
        place(config, path, values[0])
    if value is not MISSING:
        place(config, key.path, value)
    return Case(name, config)


def place(config: Config, path: str, value: object) -> None:
    """Put a value at a path; ``*`` is the first name that is there, and ``[]`` the first element of a list."""
    *sections, last = path.split(".")
    inside: Any = config
    for section in sections:
        name = section.removesuffix("[]")
        inside = inside.setdefault(next(iter(inside)) if name == "*" else name, {})
        if section != name:
            inside = inside[0]
    inside[next(iter(inside)) if last == "*" else last] = value


def answers(cases: Sequence[Case]) -> list[str]:
    """Return what went wrong with each case, "" for nothing; cases that are the same are judged once."""
    written = [json.dumps([case.situation, case.config]) for case in cases]
    once = dict(zip(written, cases, strict=True))
    plain = {name: case for name, case in once.items() if not case.situation}
    situated = {name: case for name, case in once.items() if case.situation}
    found = dict(zip([*plain, *situated], [*_plain(plain.values()), *_situated(situated.values())], strict=True))
    return [found[name] for name in written]


def _plain(cases: Iterable[Case]) -> list[str]:
    asked = [{"config": case.config, "worlds": [1], "deep": True} for case in cases]
    told = _ask([str(Path(__file__).with_name("rule_judge.py")), str(free_port())], asked)
    return ["" if one["verdict"] == "accepted" else f"{one['verdict']}: {one['error']}" for one in told]


def _situated(cases: Iterable[Case]) -> list[str]:
    asked = [
        {"situation": case.situation, "config": case.config, "ranks": SITUATIONS[case.situation].ranks}
        for case in cases
    ]
    return [one["error"] for one in _ask(["-m", "tests.e2e.situations.judge"], asked)]


def _ask(child: Sequence[str], asked: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    environment = training_environment()
    environment["PYTHONPATH"] += f"{os.pathsep}{ROOT}"
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(
            [torch_python(), *child],
            input="".join(json.dumps(one) + "\n" for one in asked),
            capture_output=True,
            text=True,
            env=environment,
            cwd=folder,
            timeout=600,
            check=False,
        )
    told: list[dict[str, Any]] = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(told) == len(asked), ended.stderr[-2000:]
    return told
