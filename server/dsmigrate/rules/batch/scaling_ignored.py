"""DS256: gradient scaling that something else makes void."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import scatters, sums
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity, Tag
from dsmigrate.rules.registry import rule

_PRESCALE = "prescale_gradients"
_FACTOR = "gradient_predivide_factor"


@rule(
    "DS256",
    "gradient-scaling-ignored",
    summary="`prescale_gradients` or `gradient_predivide_factor` where nothing reads it.",
    why="The reduce-scatter of ZeRO 1 (on by default) divides first by itself and ignores both keys. "
    '`gradient_allreduce_op` `"sum"` leaves out every division, and `prescale_gradients` replaces the predivide '
    "factor.",
    severity=Severity.INFO,
    effect=Effect.IGNORED,
    source=(
        "deepspeed/runtime/engine.py:allreduce_bucket",
        "deepspeed/runtime/zero/stage_1_and_2.py:gradient_reduction_w_predivide",
    ),
    keys=(_PRESCALE, _FACTOR),
    examples=(
        Example(
            '{"train_batch_size": 1, «"prescale_gradients"»: true, "zero_optimization": {"stage": 1}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 1}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "prescale_gradients": true, «"gradient_predivide_factor"»: 2}\n',
            fixed='{"train_batch_size": 1, "prescale_gradients": true}\n',
        ),
        Example(
            '{"train_batch_size": 1, «"gradient_predivide_factor"»: 2, "gradient_allreduce_op": "sum"}\n',
            fixed='{"train_batch_size": 1, "gradient_allreduce_op": "sum"}\n',
        ),
        Example('{"train_batch_size": 1, "prescale_gradients": true, "zero_optimization": {"stage": 0}}\n'),
        Example('{"train_batch_size": 1, "prescale_gradients": false, "zero_optimization": {"stage": 1}}\n'),
        Example('{"train_batch_size": 1, "gradient_predivide_factor": 2}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each of the keys that has a value of its own and no effect."""
    factor, prescaled = context.number(_FACTOR), context.is_on(_PRESCALE)
    for path, says_something in ((_PRESCALE, prescaled), (_FACTOR, factor is not None and factor != 1)):
        reason = _reason(context, path)
        if says_something and reason and context.has(path):
            yield context.finding(
                path,
                say("does nothing: {reason}", reason=reason),
                part="key",
                fixes=[context.remove(path, say("Remove `{path}`", path=path), safe=True)],
                tags=[Tag.UNNECESSARY],
            )


def _reason(context: Context, path: str) -> str:
    if sums(context) and context.stage in {0, 1, 2}:
        return say('`gradient_allreduce_op` "sum" divides nothing')
    if context.stage == 1 and scatters(context):
        return say("the reduce-scatter of ZeRO 1 divides before it sums anyway")
    if path == _FACTOR and context.is_on(_PRESCALE) and not (context.stage in {2, 3} and scatters(context)):
        return say("`{prescale}` takes its place", prescale=_PRESCALE)
    return ""
