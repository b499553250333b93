"""DS930: `autotuning.enabled` in the config of a normal run."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Array
from dsmigrate.knowledge import MISSING
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Arguments, Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.sections._autotuning import is_tuned

_OFF = False


@rule(
    "DS930",
    "autotuning-left-on",
    summary="`autotuning.enabled` is true: outside the autotuner the run ends after a few steps, with exit code 0.",
    why="The launcher does not look at the flag; it acts in the engine, which measures from `start_profile_step` to "
    "`end_profile_step`, writes its metrics and calls `exit()`. That is meant for the experiments of `deepspeed "
    "--autotuning`. `model_info.profile` ends the run even in the first forward pass.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._autotuning_exit",),
    keys=("autotuning.enabled", "autotuning.end_profile_step"),
    examples=(
        Example(
            '{"train_batch_size": 8, "autotuning": {"enabled": «true», "fast": false}}',
            fixed='{"train_batch_size": 8, "autotuning": {"enabled": false, "fast": false}}',
        ),
        Example('{"train_batch_size": 8, "autotuning": {"enabled": false}}'),
        Example(
            '{"train_batch_size": 8, "autotuning": {"enabled": true}}',
            facts=Facts(arguments=(Arguments("tune.sh:3", {"autotuning": "run"}),)),
        ),
        Example(
            '{"train_batch_size": 8, "autotuning": {"enabled": true}, "zero_optimization": {"stage": [0, 1, 2]}}',
            accepted=False,
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for the flag that is on, unless the file, or how it is started, is for the autotuner."""
    if context.raw("autotuning.enabled") in (MISSING, "auto") or not context.is_on("autotuning.enabled"):
        return
    lists = any(isinstance(e.node, Array) and e.key is not None and "array" not in e.key.type for e in context.entries)
    if lists or is_tuned(context):  # values to try are told of as such
        return
    last = context.number("autotuning.end_profile_step")
    steps = say("after {number} steps", number=int(last) + 1) if last is not None else say("after a few steps")
    yield context.finding(
        "autotuning.enabled",
        say(
            "Training ends {steps} with exit code 0, unless `deepspeed --autotuning` runs this config as an experiment",
            steps=steps,
        ),
        fixes=[context.replace("autotuning.enabled", _OFF, say("Switch it off"), safe=False)],
    )
