"""DS725: a parameter without which the schedule cannot be built."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import cannot_be_written, schedule
from dsmigrate.rules.typed import given, one_of


@rule(
    "DS725",
    "missing-scheduler-parameter",
    summary="A parameter is missing without which the schedule cannot be built.",
    why="WarmupDecayLR and WarmupCosineLR need `total_num_steps`, OneCycle needs `cycle_min_lr` and "
    "`cycle_max_lr`, and most schedules of torch need their lengths. Without them the engine stops with a "
    "`TypeError: missing required "
    'argument`. Transformers fills `total_num_steps` only where the file says "auto".',
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/lr_schedules.py:WarmupDecayLR", "deepspeed/runtime/lr_schedules.py:OneCycle"),
    keys=("scheduler.params",),
    pains=(20,),
    examples=(
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", «"params"»: {"warmup_num_steps": 100}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycleLR", «"params"»: {"max_lr": 0.1, "epochs": 3}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 10000}}}',
        ),
        Example('{"train_batch_size": 8, "scheduler": {"type": "LRRangeTest", "params": {}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for the required parameters that are not there."""
    facts = schedule(context)
    entry = context.entry("scheduler.params")
    if facts is None or cannot_be_written(facts) or entry is None or not isinstance(entry.node, Object):
        return
    params = given(context, "scheduler")
    missing = [name for name, parameter in facts.parameters.items() if parameter.required and name not in params]
    lengths = ("epochs", "steps_per_epoch")
    if facts.name == "OneCycleLR" and params.get("total_steps") is None and any(params.get(n) is None for n in lengths):
        missing.append("total_steps")
    if missing:
        yield context.finding(
            entry,
            say(
                "`{facts_name}` cannot be built without {all_of}: the engine stops with a `TypeError`",
                facts_name=facts.name,
                all_of=_all_of(missing),
            ),
            part="key",
        )


def _all_of(names: list[str]) -> str:
    return one_of(names).replace(" or ", " and ")
