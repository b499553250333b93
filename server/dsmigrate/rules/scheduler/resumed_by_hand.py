"""DS787: a position of the schedule that is written by hand."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import schedule
from dsmigrate.rules.typed import parameters


@rule(
    "DS787",
    "position-by-hand",
    summary="A position of the schedule in the config, which checkpoints carry by themselves.",
    why="Any `last_epoch` but -1 makes torch's schedules look for `initial_lr` in the parameter groups, which "
    "nobody has written, and stop with a `KeyError`. Any `last_batch_iteration` but -1 makes DeepSpeed's skip "
    "the first rate: the first step runs at the optimizer's own `lr`, and a run that is resumed from a "
    "checkpoint is where the checkpoint says anyway.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=("deepspeed/runtime/lr_schedules.py:WarmupLR.__init__",),
    keys=("scheduler.params",),
    examples=(
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {«"last_batch_iteration": 500»}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "StepLR", "params": {"step_size": 30, «"last_epoch": 0»}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "StepLR", "params": {"step_size": 30}}}',
        ),
        Example('{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"last_batch_iteration": -1}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a position that is not the beginning."""
    facts = schedule(context)
    if facts is None:
        return
    for entry in parameters(context, "scheduler"):
        if entry.name not in {"last_epoch", "last_batch_iteration"} or entry.name not in facts.parameters:
            continue
        value = entry.node.value() if entry.node is not None else -1
        if value in (-1, "auto"):
            continue
        yield context.finding(
            entry,
            f"{shown(entry.name)} {json_text(value)}: "
            + (
                say("the engine cannot build the schedule, which looks for `initial_lr` then")
                if facts.torch
                else say(
                    "the first step runs at the optimizer's `lr`, and checkpoints carry the position by themselves"
                )
            ),
            part="member",
            severity=Severity.ERROR if facts.torch else None,
            effect=Effect.REJECTED if facts.torch else None,
            fixes=[context.remove(entry, say("Remove {path}", path=shown(entry.path)), safe=facts.torch)],
        )
