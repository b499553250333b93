"""DS342: BF16_Optimizer instead of ZeRO 1."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import ACCUMULATION, uses_bf16_optimizer
from dsmigrate.rules.registry import rule

_NORM = "zero_optimization.compute_grad_norm"


@rule(
    "DS342",
    "bf16-optimizer-at-stage-1",
    summary="bf16 with fp32 accumulation at ZeRO 1 silently uses `BF16_Optimizer`.",
    why="With bf16 weights, `data_types.grad_accum_dtype` fp32, stage 1 and no CPU offload, the engine takes "
    "`BF16_Optimizer` instead of the ZeRO 1 optimizer. Every rank then keeps the full fp32 sum of gradients, the "
    "switches for bf16 master weights and states have no effect, and `zero_optimization.compute_grad_norm` false is "
    "refused.",
    severity=Severity.INFO,
    effect=Effect.OVERRIDDEN,
    source=(
        "deepspeed/runtime/engine.py:_do_optimizer_sanity_check",
        "deepspeed/runtime/bf16_optimizer.py:BF16_Optimizer",
    ),
    keys=(ACCUMULATION, _NORM),
    examples=(
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}, '
            '"data_types": {"grad_accum_dtype": «"fp32"»}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "gradient_clipping": 0, "bf16": {"enabled": true}, '
            '"zero_optimization": {"stage": 1, "compute_grad_norm": «false»}, '
            '"data_types": {"grad_accum_dtype": «"fp32"»}}\n',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}, '
            '"data_types": {"grad_accum_dtype": "fp32"}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}, '
            '"data_types": {"grad_accum_dtype": "bf16"}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield what the change of the optimizer means for the accumulation and the norm."""
    if not uses_bf16_optimizer(context):
        return
    yield context.finding(
        ACCUMULATION,
        say(
            "at stage 1 this replaces the ZeRO optimizer by BF16_Optimizer, with the full fp32 gradient sum "
            "on every rank; stage 2 keeps only a part"
        ),
    )
    if context.has(_NORM) and context.is_on(_NORM) is False:
        yield context.finding(
            _NORM,
            say("false is refused together with bf16 and `{accumulation}` fp32 at stage 1", accumulation=ACCUMULATION),
            severity=Severity.ERROR,
            effect=Effect.REJECTED,
        )
