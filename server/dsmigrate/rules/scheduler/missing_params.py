"""DS710: a schedule without params."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.knowledge import MISSING
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import schedule
from dsmigrate.rules.typed import one_of


@rule(
    "DS710",
    "scheduler-without-params",
    summary="A schedule without `params`, which the engine needs even where all of them have defaults.",
    why="The engine unpacks `params` as keyword arguments. Left out it is null, and the call fails with `TypeError: "
    "argument after ** must be a mapping, not NoneType` when the engine is built. `{}` takes every default.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._scheduler_from_config",),
    keys=("scheduler.params",),
    examples=(
        Example(
            '{"train_batch_size": 8, «"scheduler"»: {"type": "WarmupLR"}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", «"params": null»}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {}}}',
        ),
        Example('{"train_batch_size": 8, «"scheduler"»: {"type": "WarmupDecayLR"}}', accepted=False),
        Example('{"train_batch_size": 8, "scheduler": {"type": "LRRangeTest", "params": {}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a schedule whose params are no object."""
    facts = schedule(context)
    params = context.raw("scheduler.params")
    entry = context.entry("scheduler.params")
    if facts is None or (entry is not None and isinstance(entry.node, Object)):
        return
    required = [name for name, parameter in facts.parameters.items() if parameter.required]
    needs = say(" with {required}", required=one_of(required)) if required else say("; `{}` takes every default")
    title = say("Take every default (`{}`)")
    if params is MISSING:
        fix = context.insert(("scheduler", "params"), {}, title, safe=True)
    else:
        fix = context.replace("scheduler.params", {}, title, safe=params is None)
    yield context.finding(
        "scheduler" if params is MISSING else "scheduler.params",
        say(
            "`{facts_name}` needs an object `params`: the engine refuses to start without it; write one{needs}",
            facts_name=facts.name,
            needs=needs,
        )
        if required
        else say(
            "`{facts_name}` needs an object `params`, even an empty one: the engine refuses to start without it",
            facts_name=facts.name,
        ),
        part="key" if params is MISSING else "member",
        fixes=() if required else [fix],
    )
