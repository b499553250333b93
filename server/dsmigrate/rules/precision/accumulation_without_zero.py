"""DS340: another accumulation format than that of the weights, without ZeRO."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import ACCUMULATION, dtype, given, mode
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import before

_ZERO_SINCE, _PIPELINES_SINCE, _BF16_SINCE, _FP32_UNTIL = "0.10.1", "0.12.5", "0.17.6", "0.18.5"
"""Since when ZeRO takes other formats than that of the weights; since when bf16 weights accumulate in bf16 in
pipelines, and everywhere; since when no more in fp32."""


@rule(
    "DS340",
    "accumulation-format-without-zero",
    summary="`data_types.grad_accum_dtype` is a format that ZeRO stage 0 cannot accumulate gradients in.",
    why="Without ZeRO gradients accumulate in the format of the weights only. A bf16 run with fp32 accumulation "
    "raises `NotImplementedError: unsupported mix of model_dtype and grad_accum_dtype` when the engine is built; "
    "ZeRO 1 to 3 can. Before 0.18.5 bf16 weights accumulate in fp32 as well, and before 0.17.6 in nothing "
    "else, but for pipelines from 0.12.5 on; before 0.10.1 ZeRO refuses other formats as well.",
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
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": «"bf16"»}}\n',
            fixed='{"train_batch_size": 1, "bf16": {"enabled": true}, "data_types": {}}\n',
            version="0.16.9",
        ),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}}\n',
            version="0.16.9",
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
    if key is None or given(context, ACCUMULATION) is None or wanted is None or wanted not in key.enum:
        return
    asked = dtype(wanted)
    taken = None if weights is None else _taken(context, weights)
    if taken is None or asked in taken:
        return
    severity = None
    if context.stage:
        told = say(
            "under ZeRO this release accumulates gradients in the format of the weights, which is {weights}: it "
            "refuses {dtype}",
            weights=weights,
            dtype=asked,
        )
    elif asked == "bf16" and weights == "bf16" and not before(context, _PIPELINES_SINCE):
        severity = Severity.WARNING
        told = say(
            "without ZeRO gradients of bf16 weights accumulate in fp32: DeepSpeed refuses bf16 unless the model is a "
            "PipelineModule"
        )
    elif asked == weights:
        told = say("without ZeRO gradients of bf16 weights accumulate in fp32: DeepSpeed refuses bf16")
    else:
        told = say(
            "without ZeRO gradients accumulate in the format of the weights, which is {weights}: DeepSpeed "
            "refuses {dtype}",
            weights=weights,
            dtype=asked,
        )
    title = say("Remove `{accumulation}`", accumulation=ACCUMULATION)
    fixes = [context.remove(ACCUMULATION, title, safe=False)]
    yield context.finding(ACCUMULATION, told, severity=severity, fixes=fixes)


def _taken(context: Context, weights: str) -> frozenset[str] | None:
    """Return the formats that a release takes for the gradients of weights; None for all, or where it is open."""
    if context.stage is None or (context.stage and not before(context, _ZERO_SINCE)):
        return None
    brain = weights == "bf16"
    if context.stage:
        return frozenset({weights, "fp32"} if brain and context.stage == 1 else {weights})
    if not brain or not before(context, _FP32_UNTIL):
        return frozenset({weights})
    return frozenset({"fp32"} if before(context, _BF16_SINCE) else {"bf16", "fp32"})
