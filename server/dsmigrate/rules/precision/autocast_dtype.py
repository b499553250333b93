"""DS352: an autocast format that loses more than it gives."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import MISSING
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import AUTOCAST, dtype, given
from dsmigrate.rules.registry import rule

_KEY = "torch_autocast.dtype"
_MODULES = "torch_autocast.lower_precision_safe_modules"


@rule(
    "DS352",
    "autocast-format",
    summary="`torch_autocast.dtype` is left out, fp16 under ZeRO, or no format for autocast.",
    why="Left out, torch decides: fp16 on CUDA, and without the gradient scaler that an explicit fp16 brings. With "
    "fp16 at ZeRO 1 to 3 a step with overflow returns before the scaler is updated, so that the scale never falls "
    "and training can stand still; `gradient_clipping` sees scaled gradients there. fp32 switches nothing to lower "
    "precision. torch has no int8 autocast, but ZeRO 1 and 2 cut gradients down to int8, and ZeRO 3 fails "
    "on them. bfloat16 works at all stages.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=(
        "deepspeed/runtime/zero/stage_1_and_2.py:_optimizer_step",
        "deepspeed/runtime/config.py:get_torch_autocast_dtype",
    ),
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, «"torch_autocast"»: {"enabled": true}}\n',
            fixed='{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": "bfloat16"}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": «"fp16"»}, '
            '"zero_optimization": {"stage": 2}}\n',
            fixed='{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": "bfloat16"}, '
            '"zero_optimization": {"stage": 2}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": «"int8"»}}\n',
            fixed='{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": "bfloat16"}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": «"int8"»}, '
            '"zero_optimization": {"stage": 3}}\n',
            fixed='{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": "bfloat16"}, '
            '"zero_optimization": {"stage": 3}}\n',
        ),
        Example('{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": "fp16"}}\n'),
        Example(
            '{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": "torch.bfloat16"}, '
            '"zero_optimization": {"stage": 3}}\n'
        ),
        Example('{"train_batch_size": 1, "torch_autocast": {"enabled": false, "dtype": "int8"}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for the format that an autocast region gets."""
    if given(context, AUTOCAST) is None or not context.is_on(AUTOCAST):
        return
    raw = context.raw(_KEY)
    if raw is MISSING:
        yield context.finding(
            ("torch_autocast",),
            say(
                "without `{key}` torch takes fp16 on CUDA, and no gradient scaler is made; bfloat16 needs none",
                key=_KEY,
            ),
            part="key",
            fixes=[
                context.insert(
                    ("torch_autocast", "dtype"), "bfloat16", say('Add `{key}` "bfloat16"', key=_KEY), safe=False
                )
            ],
        )
        return
    said = _said(dtype(raw), context.stage, lowers=context.raw(_MODULES) != [])
    stops = dtype(raw) == "int8" and context.stage == 3 and context.raw(_MODULES) != []
    if said:
        yield context.finding(
            _KEY,
            said,
            severity=Severity.ERROR if stops else None,
            effect=Effect.CRASH if stops else None,
            fixes=[context.replace(_KEY, "bfloat16", say('Replace it by "bfloat16"'), safe=False)],
        )


def _said(name: str | None, stage: int | None, *, lowers: bool) -> str:
    if name == "fp16" and stage:
        return say(
            "with fp16 at ZeRO {stage} the gradient scale never falls after an overflow, and training can stand still",
            stage=stage,
        )
    if name == "int8" and stage == 3 and lowers:
        return say(
            "torch has no int8 autocast, and ZeRO 3 cannot divide int8 gradients: the first step is a RuntimeError"
        )
    if name == "int8":
        return say("torch has no int8 autocast: nothing runs in it, but ZeRO 1 and 2 cut gradients down to int8")
    if name == "fp32":
        return say("fp32 lowers no precision: the autocast region does nothing")
    return ""
