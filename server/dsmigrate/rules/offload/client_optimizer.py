"""DS555: offload with the optimizer left to the script."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import before
from dsmigrate.rules.zero._shared import OPTIMIZER_DEVICE, ZERO, offloads_optimizer

_FORCE = "zero_force_ds_cpu_optimizer"
_LION_SINCE = "0.17.6"


@rule(
    "DS555",
    "offload-client-optimizer",
    summary="Optimizer offload in a file that leaves the optimizer to the script.",
    why="With offload the engine raises `ZeRORuntimeException` for an optimizer object other than "
    "`DeepSpeedCPUAdam` and, "
    "from 0.17.6 on, `DeepSpeedCPULion`, at every stage, unless `zero_force_ds_cpu_optimizer` is false. An "
    "`optimizer` section in the file becomes a CPU one by itself. Accelerate does not hand such an optimizer on: it "
    "makes a `DeepSpeedCPUAdam` of any but Adagrad and the 32-bit Lion of bitsandbytes.",
    severity=Severity.INFO,
    effect=Effect.RISKY,
    source=(
        "deepspeed/runtime/engine.py:_configure_optimizer",
        "accelerate/utils/deepspeed.py:map_pytorch_optim_to_deepspeed",
        "https://github.com/deepspeedai/DeepSpeed/issues/7524",
    ),
    consumers=(Consumer.DEEPSPEED, Consumer.ACCELERATE),
    keys=(_FORCE, OPTIMIZER_DEVICE),
    pains=(10,),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": «"cpu"»}}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, '
            '"zero_force_ds_cpu_optimizer": false}\n',
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": «"cpu"»}}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, '
            '"zero_force_ds_cpu_optimizer": false}\n',
            consumer=Consumer.ACCELERATE,
        ),
        Example(
            '{"train_batch_size": 1, "zero_force_ds_cpu_optimizer": false, '
            '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "none"}}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the device."""
    if context.stage not in {1, 2, 3} or not offloads_optimizer(context):
        return
    if context.raw("optimizer") or context.is_on(_FORCE) is False:
        return
    where = OPTIMIZER_DEVICE if context.has(OPTIMIZER_DEVICE) else f"{ZERO}.cpu_offload"
    if context.consumer is Consumer.ACCELERATE:
        told = say("with offload Accelerate replaces the script's own optimizer with `DeepSpeedCPUAdam`")
    elif before(context, _LION_SINCE):
        told = say("without an `optimizer` section the script's own optimizer has to be `DeepSpeedCPUAdam`")
    else:
        told = say(
            "without an `optimizer` section the script's own optimizer has to be `DeepSpeedCPUAdam` or "
            "`DeepSpeedCPULion`"
        )
    yield context.finding(
        where,
        told,
        fixes=[
            context.insert((_FORCE,), False, say("Allow other optimizers, which are slow"), safe=False)
            if not context.has(_FORCE)
            else None
        ],
    )
