"""DS942: Comet settings that give a secret away or that Comet does not know."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS942",
    "comet-settings",
    summary="An API key in the config, which DeepSpeed logs and saves, or a mode that Comet does not know.",
    why="The engine logs its whole config when it starts, and checkpoints carry it: a key in `comet.api_key` ends "
    "up in logs and files. `comet.mode` goes to `comet_ml.start` unchecked, which fails for another word than "
    "`get`, `create` or `get_or_create`.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=("deepspeed/monitor/comet.py:CometMonitor", "deepspeed/runtime/config.py:DeepSpeedConfig.print"),
    since="0.14.3",
    keys=("comet.api_key", "comet.mode"),
    examples=(
        Example(
            '{"train_batch_size": 8, "comet": {"enabled": false, "api_key": «"abc"»}}',
            fixed='{"train_batch_size": 8, "comet": {"enabled": false}}',
        ),
        Example(
            '{"train_batch_size": 8, "comet": {"enabled": true, "mode": «"resume"»}}',
            accepted=None,  # needs the package comet_ml
        ),
        Example('{"train_batch_size": 8, "comet": {"enabled": false, "mode": "resume"}}'),
        Example(
            '{"train_batch_size": 8, "comet": {"enabled": true, "mode": "get"}}',
            accepted=None,  # the same
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for the key, and for a mode that is none while Comet is on."""
    key = context.raw("comet.api_key")
    if isinstance(key, str) and key not in {"", "auto"}:
        yield context.finding(
            "comet.api_key",
            say("DeepSpeed logs its config and saves it in checkpoints, this key too; set `COMET_API_KEY` instead"),
            fixes=[context.remove("comet.api_key", say("Remove the API key"), safe=False)],
        )
    mode, known = context.raw("comet.mode"), context.known.key("comet.mode")
    if known is None or not isinstance(mode, str) or mode in {*known.values, "auto"}:
        return
    if context.is_on("comet.enabled"):
        yield context.finding(
            "comet.mode",
            say(
                'Comet knows no mode "{mode}" and fails when the engine starts; it takes {values}',
                mode=mode,
                values=say(", ").join(f"`{name}`" for name in known.values),
            ),
            effect=Effect.CRASH,
        )
