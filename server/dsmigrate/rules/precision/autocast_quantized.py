"""DS354: autocast with quantized weights."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import AUTOCAST, given
from dsmigrate.rules.registry import rule

_WEIGHTS = "zero_optimization.zero_quantized_weights"


@rule(
    "DS354",
    "autocast-with-quantized-weights",
    summary="`torch_autocast` together with `zero_optimization.zero_quantized_weights`.",
    why="The engine asserts `Cannot enable both torch autocast and zero quantized weights` while it is built, at "
    "every stage.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/torch_autocast.py:_validate_auto_cast_settings",),
    keys=(AUTOCAST, _WEIGHTS),
    examples=(
        Example(
            '{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": "bfloat16"}, '
            '"zero_optimization": {"stage": 3, "zero_quantized_weights": «true»}}\n',
            fixed='{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": "bfloat16"}, '
            '"zero_optimization": {"stage": 3}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": "bfloat16"}, '
            '"zero_optimization": {"stage": 3, "zero_quantized_weights": false}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the quantized weights."""
    if given(context, AUTOCAST) is None or not context.is_on(AUTOCAST):
        return
    if given(context, _WEIGHTS) is not None and context.is_on(_WEIGHTS):
        yield context.finding(
            _WEIGHTS,
            say("DeepSpeed refuses quantized weights together with `{autocast}`", autocast=AUTOCAST),
            fixes=[context.remove(_WEIGHTS, say("Remove `{weights}`", weights=_WEIGHTS), safe=False)],
            related=[(AUTOCAST, say("autocast is switched on here"))],
        )
