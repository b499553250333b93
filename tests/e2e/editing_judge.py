"""Reads questions as JSON lines and says what the real DeepSpeed makes of them; runs where torch and deepspeed are.

``{"config": …, "world": N}``: the state of DeepSpeedConfig for a world of N processes, or ``{"error": …}``.
``{"config": …, "engine": true}``: an engine is built around a tiny model and trained for one step on one process. The
answer holds the formats it uses and the buffers that it allocated for gradients, as format and number of elements.
``{"schedule": NAME, "params": …, "lr": X, "steps": […]}``: the learning rate after each of these numbers of steps.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from fact_judge import plain
from rule_judge import Judge, told

Answer = dict[str, Any]


def main() -> None:
    """Answer what standard input asks."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # DeepSpeed's own talk
    os.dup2(1, 2)
    os.chdir(tempfile.mkdtemp())
    os.environ.update(HOME=str(Path.cwd()), TORCHDYNAMO_DISABLE="1")
    judge = Judge(sys.argv[1])
    for line in sys.stdin:
        try:
            answer = answered(judge, json.loads(line))
        except Exception as error:  # noqa: BLE001 - the answer is whatever DeepSpeed says
            answer = {"error": told(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    os._exit(0)


def answered(judge: Judge, asked: Answer) -> Answer:
    """Return the answer to one question."""
    if "schedule" in asked:
        return rates(judge, asked)
    if asked.get("engine"):
        return engine(judge, asked["config"])
    state = plain(vars(judge.shallow(asked, asked["world"])))
    assert isinstance(state, dict)
    return {"state": state}


def engine(judge: Judge, config: Answer) -> Answer:
    """Return formats and gradient buffers of an engine after its first step."""
    with judge.engine(config, 1, lambda parameters: judge.torch.optim.AdamW(parameters, lr=1e-3)) as built:
        seen: list[list[Any]] = []
        optimizer = built.optimizer
        if hasattr(optimizer, "setup_buckets"):
            setup = optimizer.setup_buckets

            def recorded() -> None:
                setup()
                if not seen:
                    seen.extend(described(buffer) for buffer in buffers(optimizer))

            optimizer.setup_buckets = recorded
        else:
            seen.extend(described(buffer) for buffer in buffers(optimizer))
        judge.step(built)
        weights, sums = built.get_data_types()
        return {
            "weights": str(weights),
            "sums": str(sums),
            "communication": str(built.communication_data_type),
            "model": str(next(built.module.parameters()).dtype),
            "optimizer": type(optimizer).__name__,
            "masters": str(masters(optimizer)),
            "buffers": seen,
        }


def buffers(optimizer: Any) -> list[Any]:
    """Return the tensors that a ZeRO optimizer collects gradients in."""
    found = []
    for bucket in getattr(optimizer, "ipg_buckets", {}).values():
        held = bucket.buffer
        found += held if isinstance(held, list) else [] if held is None else [held]
    return found


def masters(optimizer: Any) -> object:
    """Return the format of what the optimizer of ZeRO updates, None for other optimizers."""
    flat = getattr(optimizer, "fp32_partitioned_groups_flat", None) or getattr(
        optimizer, "single_partition_of_fp32_groups", None
    )
    return flat[0].dtype if flat else None


def described(buffer: Any) -> list[Any]:
    """Return the format and the number of elements of a tensor."""
    return [str(buffer.dtype), buffer.numel()]


def rates(judge: Judge, asked: Answer) -> Answer:
    """Return what a schedule makes of the learning rate, by the number of steps taken."""
    from deepspeed.runtime import lr_schedules  # noqa: PLC0415 - after the judge has sent its talk elsewhere

    weight = judge.torch.nn.Parameter(judge.torch.zeros(1))
    optimizer = judge.torch.optim.AdamW([weight], lr=asked["lr"])
    schedule = getattr(lr_schedules, asked["schedule"])(optimizer, **asked["params"])
    found = {}
    for step in range(max(asked["steps"]) + 1):
        schedule.step()
        if step in asked["steps"]:
            found[str(step)] = optimizer.param_groups[0]["lr"]
    return {"rates": found}


if __name__ == "__main__":
    main()
