"""DS441: quantized frozen weights and bf16."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZERO, switched_on

_KEY = f"{ZERO}.zero_quantized_nontrainable_weights"


@rule(
    "DS441",
    "quantized-frozen-weights",
    summary="`zero_quantized_nontrainable_weights` with bf16 weights, which cannot be quantized this way.",
    why="`engine.optimizer.quantize_nontrainable_params()` asserts that the weights are fp16. Weights that are "
    "frozen before "
    "they are partitioned are cast to int8 instead, which makes every value below 1 a 0.",
    severity=Severity.WARNING,
    effect=Effect.CRASH,
    source=(
        "deepspeed/runtime/zero/stage3.py:quantize_nontrainable_params",
        "deepspeed/runtime/zero/partition_parameters.py:_partition_param",
    ),
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, "zero_optimization": '
            '{"stage": 3, "zero_quantized_nontrainable_weights": «true»}}\n',
            fixed='{"train_batch_size": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": true}, "zero_optimization": '
            '{"stage": 3, "zero_quantized_nontrainable_weights": true}}\n',
            accepted=None,  # the kernels need a GPU
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding where weights are bf16."""
    entry = switched_on(context, _KEY)
    if context.stage != 3 or entry is None or switched_on(context, "bf16.enabled") is None:
        return
    yield context.finding(
        entry,
        say("frozen weights can be quantized in fp16 only: with bf16 the call that does it fails"),
        fixes=[context.remove(entry, say("Remove {key}", key=shown(_KEY)), safe=False)],
        related=[("bf16.enabled", say("weights are bf16"))],
    )
