"""DS515: NVMe at a stage that takes it for host memory."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import before
from dsmigrate.rules.zero._shared import OPTIMIZER_DEVICE, STAGE, ZERO

_PATH = f"{ZERO}.offload_optimizer.nvme_path"
_ADAM = '"optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, '

_ACTS_SINCE = "0.10.1"
"""Since when stage 1 and 2 ask whether the device is none; before, whether it is cpu."""


@rule(
    "DS515",
    "nvme-below-3",
    summary="`offload_optimizer.device` nvme at stage 1 or 2, which is taken for cpu.",
    why="Stage 1 and 2 only ask whether the device is none. Nothing is written to disk and no path is needed; the "
    "states take host memory, about 18 bytes per owned parameter with Adam. Before 0.10.1 they ask whether it is cpu, "
    "and offload nothing.",
    severity=Severity.WARNING,
    effect=Effect.MISREAD,
    source=("deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer",),
    keys=(OPTIMIZER_DEVICE,),
    examples=(
        Example(
            '{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": «"nvme"»}}}\n',
            fixed='{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}\n',
        ),
        Example(
            '{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": «"nvme"», "nvme_path": "/local"}}}\n',
            fixed='{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "nvme_path": "/local"}}}\n',
        ),
        Example(
            '{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/local"}}}\n',
            accepted=None,  # asynchronous I/O needs libaio
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the device."""
    if context.stage not in {1, 2} or context.raw(OPTIMIZER_DEVICE) != "nvme":
        return
    acts = not before(context, _ACTS_SINCE)
    yield context.finding(
        OPTIMIZER_DEVICE,
        say("stage {stage} offloads to host memory, not to NVMe: nvme acts as cpu", stage=context.stage)
        if acts
        else say(
            "stage {stage} of this release offloads to cpu alone: with nvme nothing is offloaded", stage=context.stage
        ),
        effect=None if acts else Effect.IGNORED,
        fixes=[
            context.replace(OPTIMIZER_DEVICE, "cpu", say("Write cpu"), safe=acts),
            context.replace(STAGE, 3, say("Use stage 3"), safe=False)
            if context.has(STAGE) and context.has(_PATH)
            else None,
        ],
    )
