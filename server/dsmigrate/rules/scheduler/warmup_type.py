"""DS740: a shape of the warm-up that DeepSpeed does not know."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import schedule, warms_up
from dsmigrate.rules.typed import given, nearest_names, params_path


@rule(
    "DS740",
    "unknown-warmup-type",
    summary="A `warmup_type` that DeepSpeed does not know and replaces by `log`.",
    why="Only `log` and `linear` are known, in lower case. Anything else is a warning in the log, and the warm-up is "
    "logarithmic: half of the way is done after sqrt(`warmup_num_steps`) steps.",
    severity=Severity.WARNING,
    effect=Effect.DEFAULT,
    source=("deepspeed/runtime/lr_schedules.py:WarmupLR.__init__",),
    keys=("scheduler.params",),
    examples=(
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_type": «"Linear"»}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_type": "linear"}}}',
        ),
        Example('{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_type": «"cosine"»}}}'),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_type": «["log"]»}}}',
            accepted=False,
        ),
        Example('{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_type": "linear"}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a shape that is not listed."""
    facts = schedule(context)
    if facts is None or not warms_up(facts):
        return
    params = given(context, "scheduler")
    allowed = [str(name) for name in facts.parameters["warmup_type"].enum]
    value = params.get("warmup_type", "log")
    if value in allowed or value == "auto":
        return
    path = params_path("scheduler", "warmup_type")
    refused = isinstance(value, (list, dict))
    close = nearest_names(value, allowed) if isinstance(value, str) else []
    yield context.finding(
        path,
        say(
            "`warmup_type` is {map}, not {value}: ",
            map=say(" or ").join(map(json_text, allowed)),
            value=json_text(value),
        )
        + (say("the engine cannot build the schedule") if refused else say("DeepSpeed warns and takes `log`")),
        severity=Severity.ERROR if refused else None,
        effect=Effect.REJECTED if refused else None,
        fixes=[context.replace(path, name, say("Write `{name}`", name=name), safe=name == "log") for name in close],
    )
