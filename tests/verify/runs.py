"""Builds runs by hand, as records of real ones read."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dsmigrate.verify.model import Ending, Input, Outcome, Run, Step, Weights

RANKS = 2
FINISHED = Outcome(Ending.FINISHED, "torchrun --nproc_per_node 2 train.py", (0, 0), ("", ""), (), 3.0)


def batch(number: int, kind: str = "float32") -> tuple[Input, ...]:
    """Inputs and targets; another number is another batch."""
    return Input(number, float(number), 8.0, kind), Input(1000 + number, float(number), 8.0, "int64")


def step(index: int, **changes: Any) -> Step:
    """A step of a run that trains well: decreasing losses, a norm above 1, three micro-batches."""
    found = Step(
        index=index,
        loss=2.0 / (1 + 0.1 * index),
        losses=(2.1 / (1 + 0.1 * index), 1.9 / (1 + 0.1 * index)),
        backwards=3,
        samples=24,
        data=tuple(batch(10 * rank + index) for rank in range(1, RANKS + 1)),
        norm=3.0 / (1 + 0.2 * index),
        norms=(3.0 / (1 + 0.2 * index),) * RANKS,
        applied=3.0 / (1 + 0.2 * index),
        limit=None,
        groups=({"parameters": 4, "lr": 0.1 * 0.9**index, "weight_decay": 0.01, "momentum": 0.9},),
        optimizer="SGD",
        train=(True,),
        autocast=(),
        random=100 + index,
        carry=None,
        scale=None,
        schedulers=1,
        skipped=False,
        outside=0,
        seconds=0.02,
        overhead=0.001,
        first=0.7 / (1 + 0.1 * index),
    )
    return replace(found, **changes)


def sketch(seed: int, norm: float = 5.0, **more: Any) -> dict[str, Any]:
    """The sketch of a tensor; another seed is another tensor."""
    draw = random.Random(seed)  # noqa: S311 - the same numbers every time
    return {
        "shape": [4, 5],
        "dtype": "float32",
        "norm": norm,
        "products": [draw.gauss(0, norm) for _ in range(4)],
        "trained": True,
        **more,
    }


def weights(seed: int = 0, **more: Any) -> Weights:
    """The weights of a model with two tensors."""
    return Weights({"layer.weight": sketch(seed, **more), "layer.bias": sketch(seed + 1000, norm=1.0, **more)})


def run(name: str = "original", steps: int = 8, **changes: Any) -> Run:
    """A run of the original."""
    found = Run(
        name=name,
        outcome=FINISHED,
        setting={"kind": "plain", "ranks": RANKS, "torch": "2.13.0", "device": "cpu", "dropout": False},
        steps=tuple(step(index) for index in range(steps)),
        start=weights(1),
        end=(weights(2),) * RANKS,
        saves=(4,),
    )
    return replace(found, **changes)


def converted(change: Callable[[Step], Step] | None = None, steps: int = 8, **changes: Any) -> Run:
    """A run of the conversion at ZeRO 2: the original's, with ``change`` applied to every step."""
    setting = {
        "kind": "deepspeed",
        "ranks": RANKS,
        "device": "cpu",
        "deepspeed": "0.19.8",
        "zero_stage": 2,
        "gradient_accumulation_steps": 1,
        "managed": False,
        "gradient_clipping": 0.0,
        "half": None,
        "engine_scheduler": None,
        **changes.pop("setting", {}),
    }
    found = run("converted", steps, setting=setting)
    if change is not None:
        found = replace(found, steps=tuple(map(change, found.steps)))
    return replace(found, **changes)


def rates(run_: Run, found: Sequence[float]) -> Run:
    """The run with other learning rates."""
    steps = tuple(
        replace(one, groups=({**one.groups[0], "lr": rate},)) for one, rate in zip(run_.steps, found, strict=True)
    )
    return replace(run_, steps=steps)
