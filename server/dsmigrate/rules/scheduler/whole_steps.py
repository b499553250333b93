"""DS735: a step count that is no whole number above 0."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import CHECKED_SINCE, WHOLE, is_checked, schedule
from dsmigrate.rules.typed import Whole, as_number, parameters, whole


@rule(
    "DS735",
    "step-count",
    summary="A step count of the schedule that is not a whole number above 0.",
    why="Since 0.19.3 `warmup_num_steps`, and since 0.19.4 `lr_range_test_step_size`, must be an `int` above 0, else "
    "`ValueError: warmup_num_steps must be a positive integer` when the engine is built; earlier releases raised "
    "a small `warmup_num_steps` to 2. For no warm-up leave the scheduler out. `100.0` and `1e3` are an `int` "
    "only for DeepSpeed's own loader (Hjson); Transformers, Accelerate and `json.load` make a float of them, "
    "which is refused.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/lr_schedules.py:WarmupLR.__init__",
        "https://github.com/deepspeedai/DeepSpeed/issues/771",
    ),
    keys=("scheduler.params",),
    pains=(19,),
    examples=(
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": «0»}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": «"100"»}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": «0.1»}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": «1e3»}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1000}}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {}, '
            '"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": «1e3»}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {}, '
            '"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1000}}}',
            consumer=Consumer.ACCELERATE,
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0.5}}}',
            version="0.19.2",
            accepted=None,  # a verdict of another release
        ),
        Example('{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}}}'),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 1e4}}}',
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each count that the schedule refuses, or that another loader would make it refuse."""
    facts = schedule(context)
    if facts is None:
        return
    for entry in parameters(context, "scheduler"):
        if entry.name not in WHOLE or entry.name not in facts.parameters or entry.node is None:
            continue
        value = entry.node.value()
        if value == "auto" or (value is None and entry.name == "total_steps"):
            continue
        if not is_checked(context, entry.name):
            if not isinstance(value, (int, float)):
                yield _refused(context, entry, value)
        elif not isinstance(value, (int, float)) or value <= 0 or whole(context, entry.node) is Whole.FLOAT:
            yield _refused(context, entry, value)
        elif whole(context, entry.node) is Whole.READ_AS_INT:
            yield context.finding(
                entry,
                say(
                    "{raw} is a whole number for DeepSpeed's own loader only: read by `json.load`, Transformers or "
                    "Accelerate it is a float, which {name} refuses",
                    raw=entry.node.raw,
                    name=shown(entry.name),
                ),
                severity=Severity.INFO,
                effect=Effect.RISKY,
                fixes=[_written(context, entry, value)],
            )


def _refused(context: Context, entry: Entry, value: object) -> Finding:
    since = CHECKED_SINCE.get(entry.name)
    when = say(" since {since}", since=since) if since and is_checked(context, entry.name) else ""
    return context.finding(
        entry,
        say(
            "{name} must be a whole number above 0{when}, not {value}: the engine cannot build the schedule",
            name=shown(entry.name),
            when=when,
            value=json_text(value),
        ),
        fixes=[_written(context, entry, value)],
    )


def _written(context: Context, entry: Entry, value: object) -> Fix | None:
    """Return the fix that writes a whole number as one."""
    number = value if isinstance(value, (int, float)) else as_number(value)
    if number is None or isinstance(number, bool) or number != int(number) or number <= 0:
        return None
    return context.replace(entry, int(number), say("Write {number}", number=int(number)), safe=True)
