"""DS960: offload for a model whose training state fits on the GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.hints._memory import fits, in_gigabytes, state_bytes
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule

_SECTIONS: tuple[Literal["offload_optimizer", "offload_param"], ...] = ("offload_optimizer", "offload_param")


@rule(
    "DS960",
    "offload-not-needed",
    summary="Offload to CPU or NVMe although the whole training state fits into half of the GPU memory.",
    why="Offload moves every gradient to the host and runs the optimizer there: it buys memory with time. By "
    "DeepSpeed's own estimate (18 bytes for each parameter with Adam in 16-bit training, sharded by stage) this "
    "model fits without it. Told only when model size, world size and GPU memory are given.",
    severity=Severity.HINT,
    effect=Effect.SLOW,
    source=(
        "deepspeed/runtime/zero/stage_1_and_2.py:estimate_zero2_model_states_mem_needs",
        "deepspeed/runtime/zero/stage3.py:estimate_zero3_model_states_mem_needs",
    ),
    keys=tuple(f"zero_optimization.{section}.device" for section in _SECTIONS),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": «"cpu"»}}}',
            facts=Facts(world_size=8, gpu_memory=80_000_000_000, parameters=1_000_000_000),
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}',
            facts=Facts(world_size=8, gpu_memory=80_000_000_000, parameters=70_000_000_000),
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each device that is not needed."""
    stage = context.stage
    if stage is None or stage == 0 or not fits(context.facts, stage):
        return
    needed = in_gigabytes(state_bytes(context.facts, stage) or 0)
    for section in _SECTIONS:
        path = f"zero_optimization.{section}.device"
        if section == "offload_param" and stage != 3:
            continue
        if context.has(path) and context.device(section) in {"cpu", "nvme"}:
            yield context.finding(
                path,
                say(
                    "{path} costs time that this model need not spend: its training state takes about {needed} of "
                    "{in_gigabytes} on each GPU at stage {stage}",
                    path=shown(path),
                    needed=needed,
                    in_gigabytes=in_gigabytes(context.facts.gpu_memory or 0),
                    stage=stage,
                ),
            )
