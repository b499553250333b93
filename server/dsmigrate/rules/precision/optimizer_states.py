"""DS322: bf16 optimizer states without bf16 master weights."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import BF16_MASTERS, BF16_STATES, bf16_section, low_masters, master_path
from dsmigrate.rules.registry import rule


@rule(
    "DS322",
    "optimizer-states-without-masters",
    summary="`bf16.bf16_optimizer_states` without `bf16.bf16_master_weights_and_grads`.",
    why="The moments take the format of the master weights, so the second switch needs the first one. DeepSpeed "
    "rejects a config with the second alone.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/config.py:_do_error_check",),
    keys=(BF16_STATES, BF16_MASTERS),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true, '
            '"bf16_optimizer_states": «true»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true, '
            '"bf16_optimizer_states": true, "bf16_master_weights_and_grads": true}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true, '
            '"bf16_master_weights_and_grads": false, "bf16_optimizer_states": «true»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true, '
            '"bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true, '
            '"bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2}, "bf16": {"bf16_optimizer_states": false}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for the states alone; stage 0 is told elsewhere."""
    on = low_masters(context)
    if context.stage == 0 or BF16_STATES not in on or BF16_MASTERS in on:
        return
    masters = master_path(context, BF16_MASTERS)
    title = say("Keep the master weights in bf16 too")
    there = context.document.node_at(masters) is not None
    yield context.finding(
        master_path(context, BF16_STATES),
        say(
            "DeepSpeed rejects this without `{bf16_section}.{masters}`",
            bf16_section=bf16_section(context),
            masters=masters[-1],
        ),
        fixes=[
            context.replace(masters, True, title, safe=False)  # noqa: FBT003 - the value of the key
            if there
            else context.insert(masters, True, title, safe=False)
        ],
    )
