"""DS901: a `comms_logger` section that is meant to be off and is on."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS901",
    "comms-logger-on",
    summary="`comms_logger` with `enabled: false`: the section alone turns the logger on, and slows every collective.",
    why="DeepSpeed asks whether the config has a `comms_logger` section and drops the value of `enabled`. While the "
    "section is there, the device is synchronized after every collective operation, so that communication no "
    "longer overlaps with computation.",
    severity=Severity.WARNING,
    effect=Effect.SLOW,
    source=("deepspeed/comm/config.py:DeepSpeedCommsConfig", "deepspeed/comm/comm.py:timed_op"),
    keys=("comms_logger", "comms_logger.enabled"),
    examples=(
        Example(
            '{"train_batch_size": 8, «"comms_logger"»: {"enabled": false, "verbose": false}}',
            fixed='{"train_batch_size": 8}',
        ),
        Example('{"train_batch_size": 8, «"comms_logger"»: {}}', fixed='{"train_batch_size": 8}'),
        Example('{"train_batch_size": 8, "comms_logger": {"enabled": true}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a section that does not say that it is on."""
    entry = context.entry("comms_logger")
    if entry is None or not isinstance(entry.node, Object) or context.is_on("comms_logger.enabled"):
        return
    said = say("with `enabled: false`") if context.has("comms_logger.enabled") else say("without `enabled`")
    yield context.finding(
        entry,
        say(
            "The section alone turns the communication logger on, also {said}: every collective waits for the device",
            said=said,
        ),
        part="key",
        fixes=[context.remove(entry, say("Remove `comms_logger`"), safe=True)],
    )
