"""DS515: NVMe at a stage that takes it for host memory."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import OPTIMIZER_DEVICE, STAGE, ZERO

_PATH = f"{ZERO}.offload_optimizer.nvme_path"
_ADAM = '"optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, '


@rule(
    "DS515",
    "nvme-below-3",
    summary="`offload_optimizer.device` nvme at stage 1 or 2, which is taken for cpu.",
    why="Stage 1 and 2 only ask whether the device is none. Nothing is written to disk and no path is needed; the "
    "states take "
    "host memory, about 18 bytes per owned parameter with Adam.",
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
    yield context.finding(
        OPTIMIZER_DEVICE,
        say("stage {stage} offloads to host memory, not to NVMe: nvme acts as cpu", stage=context.stage),
        fixes=[
            context.replace(OPTIMIZER_DEVICE, "cpu", say("Write cpu"), safe=True),
            context.replace(STAGE, 3, say("Use stage 3"), safe=False)
            if context.has(STAGE) and context.has(_PATH)
            else None,
        ],
    )
