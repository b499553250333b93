"""DS121: a value of a type that DeepSpeed rejects."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Arguments, Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.sections._autotuning import is_tuned
from dsmigrate.rules.types._shared import verdicts
from dsmigrate.rules.types._values import mend, place, shown_value
from dsmigrate.rules.types._verdict import Kind


@rule(
    "DS121",
    "wrong-type",
    summary="A value of a type that DeepSpeed rejects.",
    why=(
        'Sections that are pydantic models convert what they can (`"3"`, `3.0` and `true` are integers, `"yes"` is'
        ' true) and raise a `ValidationError` for the rest: `"5e8"` and `5.5` are no integers, 2 is no boolean. Some'
        " plain reads fail as well, with a bare `TypeError`."
    ),
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/config_utils.py:DeepSpeedConfigModel", "deepspeed/runtime/config.py:_batch_assertion"),
    keys=("train_batch_size", "zero_optimization.reduce_bucket_size", "fp16.loss_scale"),
    pains=(4, 6, 31),
    examples=(
        Example('{"train_batch_size": «"8"»}', fixed='{"train_batch_size": 8}'),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"reduce_bucket_size": «"5e8"»}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"reduce_bucket_size": 5e8}}',
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"overlap_comm": «2»}}', accepted=False),
        Example('{"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": «false»}}', accepted=False),
        Example('{"train_batch_size": 8, "log_level": «3»}', accepted=False),
        Example(
            '{"train_batch_size": 8, "autotuning": {"enabled": true}, '
            '"zero_optimization": {"overlap_comm": «[false]»}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "autotuning": {"enabled": true}, "zero_optimization": {"overlap_comm": [false]}}',
            facts=Facts(arguments=(Arguments("tune.sh:3", {"autotuning": "run"}),)),
            accepted=None,  # the autotuner tries the values of a list, and gives each trial one
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8}}'),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each value that is refused for its type."""
    for entry, key, node, verdict in verdicts(context, Kind.TYPE):
        value = node.value()
        tried = isinstance(value, list) and context.is_on("autotuning.enabled")
        if tried and is_tuned(context):
            continue
        only = say("; a list of values to try is for `deepspeed --autotuning` alone") if tried else ""
        yield context.finding(
            entry,
            say(
                "DeepSpeed rejects {value} for {place}, which has to be {wanted}{only}",
                value=shown_value(value),
                place=place(entry),
                wanted=verdict.wanted,
                only=only,
            ),
            severity=Severity.WARNING if tried else verdict.severity,
            effect=verdict.effect,
            fixes=[mend(context, entry, key, value, safe=True)],
        )
