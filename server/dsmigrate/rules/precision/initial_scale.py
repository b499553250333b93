"""DS313: a first loss scale that is out of reach."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import FIRST
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.precision._shared import FP16, given, scales
from dsmigrate.rules.registry import rule

_KEY = "fp16.initial_scale_power"
_HIGH = 24
"""Above the largest float16 (65504) by a factor of 256."""
_INTEGER = 63
"""The largest power of two that torch takes as an integer factor."""
_FLOAT = 1023
_OLD_DEFAULT = 32


@rule(
    "DS313",
    "initial-scale-power",
    summary="`fp16.initial_scale_power` starts the loss scale far outside the range of float16.",
    why="Training starts at a loss scale of 2 to this power and halves it after overflows, so every power above "
    "what the gradients bear costs a skipped step. Above 63 the scale is no 64-bit integer any more and the first "
    "backward at ZeRO 1 to 3 raises `OverflowError` (above 1023 without ZeRO). Below 0 the scale shrinks gradients. "
    "The default was 32 before 0.8.0 and is 16 now: a project that pins an older release skips its first steps, and "
    "trains nothing in them.",
    severity=Severity.INFO,
    effect=Effect.SLOW,
    source=("deepspeed/runtime/precision_config.py:dynamic_loss_scale_args",),
    keys=(_KEY,),
    pains=(6,),
    examples=(
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": true, "initial_scale_power": «32»}, '
            '"zero_optimization": {"stage": 1}}\n',
            fixed='{"train_batch_size": 1, "fp16": {"enabled": true}, "zero_optimization": {"stage": 1}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": true, "initial_scale_power": «64»}, '
            '"zero_optimization": {"stage": 3}}\n',
            fixed='{"train_batch_size": 1, "fp16": {"enabled": true}, "zero_optimization": {"stage": 3}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": true, "initial_scale_power": «-3»}, '
            '"zero_optimization": {"stage": 1}}\n',
            fixed='{"train_batch_size": 1, "fp16": {"enabled": true}, "zero_optimization": {"stage": 1}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": true, "initial_scale_power": 20}, '
            '"zero_optimization": {"stage": 1}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": «true»}, "zero_optimization": {"stage": 1}}\n',
            fixed='{"train_batch_size": 1, "fp16": {"enabled": true, "initial_scale_power": 16}, '
            '"zero_optimization": {"stage": 1}}\n',
            version=FIRST,
            facts=Facts(is_older=True),
        ),
        Example('{"train_batch_size": 1, "fp16": {"enabled": false, "initial_scale_power": 1000}}\n'),
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": true, "loss_scale": 8, "initial_scale_power": 100}, '
            '"zero_optimization": {"stage": 1}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a power below 0 or above 24, an error for one that cannot be multiplied with."""
    if context.facts.is_older and given(context, _KEY) is None and scales(context):
        yield _of_older_releases(context)
        return
    power = context.number(_KEY)
    if given(context, _KEY) is None or power is None or 0 <= power <= _HIGH or not scales(context):
        return
    severity, effect = None, None
    default = context.known.default(_KEY)
    if power < 0:
        severity, effect = Severity.WARNING, Effect.RISKY
        message = say("2 to the power of {power} shrinks the loss instead of scaling it up", power=power)
    elif power > (_INTEGER if context.stage else _FLOAT) and context.stage is not None:
        severity, effect = Severity.ERROR, Effect.CRASH
        message = say(
            "2 to the power of {power} is too large to multiply with: the first backward is an OverflowError",
            power=power,
        )
    else:
        message = say(
            "the first steps, up to {number} or more, are skipped until the scale has come down from 2^{power}",
            number=power - 16,
            power=power,
        )
    yield context.finding(
        _KEY,
        say("{message}; the default is {default}", message=message, default=default),
        severity=severity,
        effect=effect,
        fixes=[context.remove(_KEY, say("Remove `{key}`, for the default", key=_KEY), safe=False)],
    )


def _of_older_releases(context: Context) -> Finding:
    return context.finding(
        FP16,
        say(
            "before DeepSpeed 0.8.0 the loss scale starts at 2^{power}, and the first {number} steps or more are "
            "skipped: nothing is trained until it has come down",
            power=_OLD_DEFAULT,
            number=_OLD_DEFAULT - 16,
        ),
        fixes=[
            context.insert(
                ("fp16", "initial_scale_power"), 16, say("Write the default of later releases, 16"), safe=False
            )
        ],
    )
