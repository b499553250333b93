"""DS818: an optimizer or scheduler of the file, for which an Accelerate script needs a stand-in."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_STAND_INS = {"optimizer": "DummyOptim", "scheduler": "DummyScheduler"}


@rule(
    "DS818",
    "accelerate-stand-ins",
    summary="An optimizer or scheduler in the file makes Accelerate refuse a real one from the script.",
    why='`Accelerator.prepare` raises "You cannot specify an optimizer in the config file and in the code at the '
    'same time" unless the script passes `accelerate.utils.DummyOptim`, and the same for the scheduler with '
    "`DummyScheduler`.",
    severity=Severity.HINT,
    effect=Effect.RISKY,
    source=("accelerate/accelerator.py:Accelerator._prepare_deepspeed",),
    consumers=(Consumer.ACCELERATE,),
    keys=("optimizer", "scheduler"),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, '
            '«"optimizer"»: {"type": "AdamW", "params": {"lr": 0.001}}}',
            consumer=Consumer.ACCELERATE,
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 2}}', consumer=Consumer.ACCELERATE),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, '
            '"optimizer": {"type": "AdamW", "params": {"lr": 0.001}}}',
            consumer=Consumer.TRANSFORMERS,
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each of the two sections."""
    for section, stand_in in _STAND_INS.items():
        if context.has(section):
            yield context.finding(
                section,
                say(
                    "With `{section}` in the file the script must pass `accelerate.utils.{stand_in}` to `prepare`; a "
                    "real {section} is a ValueError",
                    section=section,
                    stand_in=stand_in,
                ),
                part="key",
            )
