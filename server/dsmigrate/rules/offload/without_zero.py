"""DS510: optimizer offload while ZeRO is off."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import OPTIMIZER_DEVICE, STAGE, ZERO, offloads_optimizer, section

_ADAM = '"optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, '


@rule(
    "DS510",
    "offload-without-zero",
    summary="Optimizer offload at stage 0: the optimizer becomes a CPU one while the weights stay on the GPU.",
    why="The device is looked at when the optimizer is built, whatever the stage. At stage 0 nothing moves weights "
    "and gradients "
    "to the host, so that the first step of the CPU optimizer on a GPU fails.",
    severity=Severity.ERROR,
    effect=Effect.CRASH,
    source=(
        "deepspeed/runtime/engine.py:zero_use_cpu_optimizer",
        "deepspeed/runtime/engine.py:_configure_basic_optimizer",
    ),
    keys=(OPTIMIZER_DEVICE,),
    examples=(
        Example(
            '{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 0, "offload_optimizer": {"device": «"cpu"»}}}\n',
            fixed='{"train_batch_size": 1, ' + _ADAM + '"zero_optimization": {"stage": 0}}\n',
        ),
        Example(
            '{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 0, "offload_optimizer": {"device": "none"}}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the device."""
    if context.stage != 0 or context.raw(STAGE) == "auto" or not offloads_optimizer(context):
        return
    entry = section(context, f"{ZERO}.offload_optimizer") or context.entry(f"{ZERO}.cpu_offload")
    yield context.finding(
        OPTIMIZER_DEVICE if context.has(OPTIMIZER_DEVICE) else f"{ZERO}.cpu_offload",
        say("at stage 0 this makes the optimizer a CPU one without moving weights: the first step on a GPU fails"),
        fixes=[context.remove(entry, say("Remove the offload"), safe=False)] if entry is not None else [],
    )
