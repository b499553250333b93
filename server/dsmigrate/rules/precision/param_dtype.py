"""DS344: a parameter format that is not that of the mode."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import BF16, FP16, dtype, given, mode
from dsmigrate.rules.registry import rule

_KEY = "data_types.param_dtype"


@rule(
    "DS344",
    "param-dtype",
    summary="`data_types.param_dtype` differs from the format that `fp16` and `bf16` give.",
    why="The key converts nothing. It states the format that the two sections lead to, and the engine refuses to "
    "start when it disagrees: `bf16` here without `bf16.enabled` stops the run.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/engine.py:_assert_valid_mixed_precision_config",),
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, "data_types": {"param_dtype": «"bf16"»}}\n',
            fixed='{"train_batch_size": 1, "data_types": {}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, "data_types": {"param_dtype": «"float16"»}}\n',
            fixed='{"train_batch_size": 1, "bf16": {"enabled": true}, "data_types": {}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, "data_types": {"param_dtype": "torch.bfloat16"}}\n'
        ),
        Example('{"train_batch_size": 1, "data_types": {"param_dtype": "fp32"}}\n'),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {}, "bf16": {"enabled": "auto"}, '
            '"data_types": {"param_dtype": "fp32"}}\n',
            consumer=Consumer.TRANSFORMERS,
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding when both formats are known and differ."""
    key, weights, wanted = context.known.key(_KEY), mode(context), context.value(_KEY)
    if key is None or given(context, _KEY) is None or weights is None or wanted is None or wanted not in key.enum:
        return
    if dtype(wanted) != weights:
        yield context.finding(
            _KEY,
            say(
                "the weights are {weights} by `{fp16}` and `{bf16}`: DeepSpeed refuses to start with another "
                "format here",
                weights=weights,
                fp16=FP16,
                bf16=BF16,
            ),
            fixes=[context.remove(_KEY, say("Remove `{key}`", key=_KEY), safe=True)],
        )
