"""DS128: something else where a number is read without a check."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.types._shared import verdicts
from dsmigrate.rules.types._values import mend, place, shown_value
from dsmigrate.rules.types._verdict import Kind


@rule(
    "DS128",
    "unchecked-number",
    summary="A string, a switch or a fraction where DeepSpeed reads a number, or a whole one, without a check.",
    why=(
        'DeepSpeed takes the value as it is. `"1.0"` for `gradient_clipping` loads, and raises a `TypeError` at the'
        " first step; `true` counts as 1; a micro-batch of 2.5 passes when the batch sizes multiply up."
    ),
    severity=Severity.WARNING,
    effect=Effect.MISREAD,
    source=("deepspeed/runtime/config_utils.py:get_scalar_param", "deepspeed/runtime/engine.py:clip_fp32_gradients"),
    keys=("gradient_clipping", "train_micro_batch_size_per_gpu", "steps_per_print"),
    examples=(
        Example(
            '{"train_batch_size": 8, "gradient_clipping": «"1.0"»}',
            fixed='{"train_batch_size": 8, "gradient_clipping": 1.0}',
        ),
        Example('{"train_batch_size": 5, "train_micro_batch_size_per_gpu": «2.5», "gradient_accumulation_steps": 2}'),
        Example('{"train_batch_size": 8, "steps_per_print": «true»}'),
        Example('{"train_batch_size": 8, "flops_profiler": {"enabled": false, "top_modules": «1.5»}}'),
        Example('{"train_batch_size": 8, "gradient_clipping": 1, "steps_per_print": null}'),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {}, "steps_per_print": "inf"}',
            consumer=Consumer.ACCELERATE,  # which writes infinity itself
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each value that is no such number."""
    for entry, key, node, verdict in verdicts(context, Kind.NUMBER):
        value = node.value()
        if isinstance(value, bool):
            comes = say("DeepSpeed counts with {value}", value=int(value))
        elif verdict.effect is Effect.CRASH:
            comes = say("training stops with a TypeError at the first step")
        elif isinstance(value, float):
            comes = say("DeepSpeed takes the fraction as it is")
        else:
            comes = say("DeepSpeed takes it without a check")
        yield context.finding(
            entry,
            say(
                "{place} has to be {wanted}; {value} is not, and {comes}",
                place=place(entry),
                wanted=verdict.wanted,
                value=shown_value(value),
                comes=comes,
            ),
            severity=verdict.severity,
            effect=verdict.effect,
            fixes=[mend(context, entry, key, value, safe=verdict.effect is Effect.CRASH)],
        )
