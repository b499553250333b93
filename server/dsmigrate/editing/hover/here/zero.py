"""The stage, what is offloaded, and what ZeRO decides where nothing is written."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.derived import in_force, offloads, stage_text
from dsmigrate.editing.derived.force import CONTIGUOUS, OPTIMIZER_DEVICE, OVERLAP, PREFETCH, SEQUENTIAL, STAGE, ZERO
from dsmigrate.editing.hover.here.subject import Subject
from dsmigrate.editing.hover.told import is_told
from dsmigrate.rules.context import Context
from dsmigrate.rules.hints._memory import in_gigabytes, state_bytes
from dsmigrate.rules.model import Effect
from dsmigrate.rules.precision._shared import uses_bf16_optimizer


def lines(at: Subject) -> Iterator[str]:
    """Yield what ZeRO comes to."""
    context, path = at.context, at.path
    if path == ZERO:
        yield ", ".join([stage_text(context), *(f"{what} on {where}" for what, where in offloads(context))]) + "."
    elif path == STAGE:
        yield from _stage(context)
    elif path == OVERLAP and context.value(path) is None and context.stage:
        yield f"Unset: {'on' if in_force(context, OVERLAP) else 'off'} at stage {context.stage}."
    elif path == CONTIGUOUS and not context.is_on(path) and in_force(context, path) is True and context.stage:
        yield "On all the same: the optimizer is offloaded."
    elif path == PREFETCH and in_force(context, PREFETCH) == 1 != context.number(PREFETCH):
        yield f"Overridden: `{SEQUENTIAL}` is on and makes it 1 element."
    elif path == OPTIMIZER_DEVICE and ("optimizer", "cpu") in offloads(context) and _says_nvme(at):
        yield f"The optimizer goes to the CPU: NVMe is for stage 3, and the stage is {context.stage}."


def _says_nvme(at: Subject) -> bool:
    return at.context.device("offload_optimizer") == "nvme" and not is_told(at.view, at.target, Effect)


def _stage(context: Context) -> Iterator[str]:
    stage = context.stage
    if stage is None:
        return
    if uses_bf16_optimizer(context):
        yield "`BF16_Optimizer` takes the place of stage 1: bf16 weights, fp32 sums, no CPU offload."
    needed = state_bytes(context.facts, stage)
    if needed is not None and not offloads(context) and 0 < needed < 1e18:
        yield (
            f"Weights, gradients and Adam states take about {in_gigabytes(needed)} on each GPU in 16-bit training: "
            f"{context.facts.parameters} parameters on {context.facts.world_size} GPUs."
        )
