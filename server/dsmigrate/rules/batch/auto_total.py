"""DS204: Accelerate cannot fill `train_batch_size` without a micro-batch."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import MISSING, Consumer
from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import MICRO, TOTAL
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS204",
    "auto-total-without-micro-batch",
    summary='Accelerate fills `train_batch_size` "auto" only where `train_micro_batch_size_per_gpu` is given.',
    why="Accelerate computes the total from the micro-batch of the config, which it takes from the data loader "
    'where the file says `"auto"`. Without that key it has no value for `"auto"` and raises '
    "`ValueError: train_batch_size not found in kwargs`.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "accelerate/accelerator.py:_prepare_deepspeed",
        "accelerate/utils/dataclasses.py:DeepSpeedPlugin.fill_match",
    ),
    consumers=(Consumer.ACCELERATE,),
    keys=(TOTAL,),
    examples=(
        Example(
            '{"train_batch_size": «"auto"», "zero_optimization": {"stage": 2}}\n',
            fixed='{"train_batch_size": "auto", "zero_optimization": {"stage": 2}, '
            '"train_micro_batch_size_per_gpu": "auto"}\n',
            consumer=Consumer.ACCELERATE,
        ),
        Example(
            '{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "zero_optimization": {}}\n',
            consumer=Consumer.ACCELERATE,
        ),
        Example(
            '{"train_batch_size": "auto", "zero_optimization": {}}\n',
            consumer=Consumer.TRANSFORMERS,
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding when the total is "auto" and no micro-batch stands beside it."""
    if context.raw(TOTAL) == "auto" and context.raw(MICRO) in (MISSING, None):
        yield context.finding(
            TOTAL,
            say(
                'Accelerate stops with a ValueError: it can fill "auto" only where `{micro}` is given as well',
                micro=MICRO,
            ),
            fixes=[context.insert((MICRO,), "auto", say("Add `{micro}`", micro=MICRO), safe=True)],
        )
