"""DS127: a switch that is no boolean, and counts as on for being something."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.types._checked import as_boolean
from dsmigrate.rules.types._shared import verdicts
from dsmigrate.rules.types._values import place, shown_value
from dsmigrate.rules.types._verdict import Kind


@rule(
    "DS127",
    "truthy-switch",
    summary='A switch that nothing checks holds a string or a number: `"false"` counts as true.',
    why=(
        "DeepSpeed takes these switches as they are and asks Python whether they are true. Every string that is not "
        'empty is, `"false"` and `"no"` included; null and 0 are not. Where the value is handed to compiled code, as '
        "that of `aio.single_submit` is with NVMe offload, a text is a `TypeError`."
    ),
    severity=Severity.WARNING,
    effect=Effect.MISREAD,
    source=("deepspeed/runtime/config_utils.py:get_scalar_param",),
    keys=("prescale_gradients", "zero_allow_untested_optimizer", "activation_checkpointing.partition_activations"),
    pains=(30,),
    examples=(
        Example(
            '{"train_batch_size": 8, "dump_state": «"false"»}',
            fixed='{"train_batch_size": 8, "dump_state": false}',
        ),
        Example('{"train_batch_size": 8, "dump_state": «"true"»}', fixed='{"train_batch_size": 8, "dump_state": true}'),
        Example(
            '{"train_batch_size": 8, "aio": {"single_submit": «"true"»}, '
            '"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/nvme"}}}',
            fixed='{"train_batch_size": 8, "aio": {"single_submit": true}, '
            '"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/nvme"}}}',
        ),
        Example('{"train_batch_size": 8, "zero_force_ds_cpu_optimizer": «null»}'),
        Example('{"train_batch_size": 8, "wall_clock_breakdown": «2»}'),
        Example('{"train_batch_size": 8, "dump_state": 0, "memory_breakdown": null}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each switch that is no boolean."""
    for entry, _, node, verdict in verdicts(context, Kind.TRUTHY):
        value = node.value()
        on, stops = bool(value), verdict.effect is Effect.CRASH
        meant = as_boolean(value) if isinstance(value, str) else None
        fix = None
        if meant is not None:
            fix = context.replace(
                entry, meant, say("Write `{lower}`", lower=str(meant).lower()), safe=stops or meant is on
            )
        does = say("stops what takes it") if stops else say("counts as {lower}", lower=str(on).lower())
        yield context.finding(
            entry,
            say(
                "{place} has to be true or false; {value} {does}",
                place=place(entry),
                value=shown_value(value),
                does=does,
            ),
            severity=Severity.ERROR if stops else Severity.INFO if meant is on else None,
            effect=verdict.effect,
            fixes=[fix],
        )
