"""DS250: a negative gradient norm to clip to."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_KEY = "gradient_clipping"


@rule(
    "DS250",
    "negative-clipping",
    summary="A negative `gradient_clipping` switches clipping off.",
    why="The value is the largest norm that gradients may have. DeepSpeed clips only when it is above 0 and does "
    "not check the sign, so a negative number means the same as `0.0`, without a message.",
    severity=Severity.WARNING,
    effect=Effect.MISREAD,
    source=(
        "deepspeed/runtime/engine.py:_take_model_step",
        "deepspeed/runtime/zero/stage_1_and_2.py:unscale_and_clip_grads",
    ),
    keys=(_KEY,),
    pains=(22,),
    examples=(
        Example(
            '{"train_batch_size": 1, "gradient_clipping": «-1.0»}\n',
            fixed='{"train_batch_size": 1, "gradient_clipping": 0.0}\n',
        ),
        Example('{"train_batch_size": 1, "gradient_clipping": 0}\n'),
        Example('{"train_batch_size": 1, "gradient_clipping": 1.0}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a number below 0."""
    value = context.value(_KEY)
    if isinstance(value, (int, float)) and value < 0:
        yield context.finding(
            _KEY,
            say(
                "{value} switches clipping off without a message; write 0.0 for that, or the norm to clip to",
                value=value,
            ),
            fixes=[context.replace(_KEY, 0.0, say("Replace it by 0.0"), safe=True)],
        )
