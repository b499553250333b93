"""DS340: another accumulation format than that of the weights, without ZeRO."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import ACCUMULATION, dtype, given, mode
from dsmigrate.rules.registry import rule


@rule(
    "DS340",
    "accumulation-format-without-zero",
    summary="`data_types.grad_accum_dtype` differs from the weights at ZeRO stage 0.",
    why="Without ZeRO gradients accumulate in the format of the weights only. A bf16 run with fp32 accumulation "
    "raises `NotImplementedError: unsupported mix of model_dtype and grad_accum_dtype` when the engine is built; "
    "ZeRO 1 to 3 can.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/engine.py:_do_optimizer_sanity_check",),
    keys=(ACCUMULATION,),
    examples=(
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": «"fp32"»}}\n',
            fixed='{"train_batch_size": 1, "bf16": {"enabled": true}, "data_types": {}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "data_types": {"grad_accum_dtype": «"torch.bfloat16"»}}\n',
            fixed='{"train_batch_size": 1, "data_types": {}}\n',
        ),
        Example('{"train_batch_size": 1, "data_types": {"grad_accum_dtype": "float32"}}\n'),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}, '
            '"data_types": {"grad_accum_dtype": "fp32"}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding when both formats are known and differ."""
    key, weights, wanted = context.known.key(ACCUMULATION), mode(context), context.value(ACCUMULATION)
    if key is None or given(context, ACCUMULATION) is None or weights is None or wanted not in key.enum:
        return
    if context.stage == 0 and wanted is not None and dtype(wanted) != weights:
        yield context.finding(
            ACCUMULATION,
            say(
                "without ZeRO gradients accumulate in the format of the weights, which is {weights}: DeepSpeed "
                "refuses {dtype}",
                weights=weights,
                dtype=dtype(wanted),
            ),
            fixes=[context.remove(ACCUMULATION, say("Remove `{accumulation}`", accumulation=ACCUMULATION), safe=False)],
        )
