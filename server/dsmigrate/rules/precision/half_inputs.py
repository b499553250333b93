"""DS306: inputs made fp16 for a model that is not."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import FP16, given, mode
from dsmigrate.rules.registry import rule

_KEY = "fp16.auto_cast"


@rule(
    "DS306",
    "half-inputs",
    summary="`fp16.auto_cast` acts even while `fp16.enabled` is false.",
    why="The hook on the model's forward converts positional floating-point inputs to float16 whatever the training "
    "mode is. An fp32 or bf16 model then gets half tensors and fails with `mat1 and mat2 must have the same dtype`.",
    severity=Severity.WARNING,
    effect=Effect.CRASH,
    source=("deepspeed/runtime/engine.py:_forward_prologue",),
    keys=(_KEY,),
    pains=(34,),
    examples=(
        Example(
            '{"train_batch_size": 1, "fp16": {"auto_cast": «true»}}\n',
            fixed='{"train_batch_size": 1, "fp16": {}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": true, "auto_cast": true}, "zero_optimization": {"stage": 1}}\n'
        ),
        Example('{"train_batch_size": 1, "fp16": {"enabled": false, "auto_cast": false}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding when inputs are cast and fp16 is off for certain."""
    weights = mode(context)
    if given(context, _KEY) is not None and context.is_on(_KEY) and weights in {"bf16", "fp32"}:
        yield context.finding(
            _KEY,
            say(
                "inputs become float16 although `{fp16}` is off and the weights are {weights}: the first forward fails",
                fp16=FP16,
                weights=weights,
            ),
            fixes=[context.remove(_KEY, say("Remove `{key}`", key=_KEY), safe=False)],
        )
