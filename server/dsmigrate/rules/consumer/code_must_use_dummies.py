"""DS818: an optimizer or scheduler of the file, for which an Accelerate script needs a stand-in, and the reverse."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import STAND_INS, Accelerated, Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS818",
    "accelerate-stand-ins",
    summary="An optimizer or scheduler in the file makes Accelerate refuse a real one from the script.",
    why='`Accelerator.prepare` raises "You cannot specify an optimizer in the config file and in the code at the '
    'same time" unless the script passes `accelerate.utils.DummyOptim`, and the same for the scheduler with '
    "`DummyScheduler`. A stand-in without its section raises ValueError too. What the script passes is read as for "
    "`script-overridden` (DS829).",
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
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, '
            '«"scheduler"»: {"type": "WarmupLR", "params": {"warmup_num_steps": 10}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            consumer=Consumer.ACCELERATE,
            facts=Facts(accelerated=(Accelerated(real={"scheduler": "train.py:30"}),)),
        ),
        Example(
            '«{»"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            consumer=Consumer.ACCELERATE,
            facts=Facts(accelerated=(Accelerated(stand_ins={"optimizer": "train.py:30"}),)),
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, '
            '"optimizer": {"type": "AdamW", "params": {"lr": 0.001}}}',
            consumer=Consumer.ACCELERATE,
            facts=Facts(accelerated=(Accelerated(has_stand_in=frozenset({"optimizer"})),)),
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each of the two sections, and for each stand-in without one."""
    scripts = context.facts.accelerated
    for section, stand_in in STAND_INS.items():
        real = next((one.real[section] for one in scripts if section in one.real), "")
        lonely = next((one.stand_ins[section] for one in scripts if section in one.stand_ins), "")
        if context.has(section) and real:
            yield context.finding(
                section,
                say(
                    "Accelerate raises ValueError: `prepare` gets a real {section} ({place}); pass "
                    "`accelerate.utils.{stand_in}`, or remove `{section}` here",
                    section=section,
                    place=real,
                    stand_in=stand_in,
                ),
                part="key",
                severity=Severity.ERROR,
                effect=Effect.REJECTED,
                fixes=[context.remove((section,), say("Remove `{section}`", section=section), safe=False)],
            )
        elif context.has(section) and not (scripts and all(section in one.has_stand_in for one in scripts)):
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
        elif lonely and context.root is not None and not context.has(section):
            yield context.finding(
                (section,),
                say(
                    "Accelerate raises ValueError: `prepare` gets `{stand_in}` ({place}), and the config has no "
                    "`{section}`",
                    stand_in=stand_in,
                    place=lonely,
                    section=section,
                ),
                severity=Severity.ERROR,
                effect=Effect.REJECTED,
            )
