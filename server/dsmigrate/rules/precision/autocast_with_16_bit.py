"""DS350: autocast over weights that are 16-bit already."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import AUTOCAST, bf16_path, dtype, given, mode
from dsmigrate.rules.registry import rule


@rule(
    "DS350",
    "autocast-with-16-bit-weights",
    summary="`torch_autocast` together with `fp16` or `bf16`: the weights are 16-bit all the same.",
    why="`torch_autocast` is the counterpart of the two modes: weights stay fp32 and torch picks the format of each "
    "operation. With `fp16.enabled` or `bf16.enabled` the engine still converts the weights, so that autocast has "
    "little left to do and the fp32 weights that it is chosen for are gone. With `dtype` fp16 at stage 0 the gradient "
    "scaler that comes along never sees the gradients of the wrapped optimizer: `AssertionError: No inf checks were "
    "recorded for this optimizer` in the first step.",
    severity=Severity.WARNING,
    effect=Effect.OVERRIDDEN,
    source=("deepspeed/runtime/torch_autocast.py:autocast_if_enabled", "deepspeed/runtime/engine.py:forward"),
    keys=(AUTOCAST,),
    examples=(
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, '
            '"torch_autocast": {"enabled": «true», "dtype": "bfloat16"}}\n',
            fixed='{"train_batch_size": 1, "bf16": {"enabled": false}, '
            '"torch_autocast": {"enabled": true, "dtype": "bfloat16"}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, '
            '"torch_autocast": {"enabled": «true», "dtype": "fp16"}}\n',
            fixed='{"train_batch_size": 1, "bf16": {"enabled": false}, '
            '"torch_autocast": {"enabled": true, "dtype": "fp16"}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": false}, '
            '"torch_autocast": {"enabled": true, "dtype": "bfloat16"}}\n'
        ),
        Example('{"train_batch_size": 1, "bf16": {"enabled": true}, "torch_autocast": {"enabled": false}}\n'),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {}, "bf16": {"enabled": "auto"}, '
            '"torch_autocast": {"enabled": true, "dtype": "bf16"}}\n',
            consumer=Consumer.TRANSFORMERS,
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding when autocast and a 16-bit mode are on for certain."""
    weights = mode(context)
    if given(context, AUTOCAST) is None or not context.is_on(AUTOCAST) or weights not in {"fp16", "bf16"}:
        return
    switch = bf16_path(context, "enabled") if weights == "bf16" else ("fp16", "enabled")
    stops = context.stage == 0 and dtype(context.raw("torch_autocast.dtype")) == "fp16"
    yield context.finding(
        AUTOCAST,
        say(
            "{switch} makes the weights {weights} all the same; autocast is meant for fp32 weights",
            switch=shown(switch),
            weights=weights,
        )
        + (say(", and the gradient scaler of fp16 stops the first step") if stops else ""),
        severity=Severity.ERROR if stops else None,
        effect=Effect.CRASH if stops else None,
        fixes=[context.replace(switch, False, say("Switch {weights} off", weights=weights), safe=False)],  # noqa: FBT003 - the value of the key
        related=[(switch, say("{weights} is switched on here", weights=weights))],
    )
