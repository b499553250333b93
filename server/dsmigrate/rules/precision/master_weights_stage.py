"""DS320: low-precision master weights at a ZeRO stage that has none."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import MASTERS, low_masters, master_path
from dsmigrate.rules.registry import rule


@rule(
    "DS320",
    "master-weights-without-zero",
    summary="Low-precision master weights or optimizer states at ZeRO stage 0.",
    why="`fp16.fp16_master_weights_and_grads`, `bf16.bf16_master_weights_and_grads` and "
    "`bf16.bf16_optimizer_states` concern the master copies that ZeRO keeps. DeepSpeed rejects them at stage 0 "
    "while it reads the config, also when the mode of the section is off. Before 0.18.3 stage 2 alone had them, and "
    "before 0.17.1 the check was left out while fp16 was off.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/config.py:_do_error_check",),
    keys=MASTERS,
    examples=(
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true, "bf16_master_weights_and_grads": «true»}}\n',
            fixed='{"train_batch_size": 1, "bf16": {"enabled": true}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "fp16": {"fp16_master_weights_and_grads": «true»}}\n',
            fixed='{"train_batch_size": 1, "fp16": {}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 1}, "fp16": {"enabled": true, '
            '"fp16_master_weights_and_grads": «true»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 1}, "fp16": {"enabled": true}}\n',
            version="0.17.6",
            accepted=None,  # the judge is the newest release
        ),
        Example(
            '{"train_batch_size": 1, "fp16": {"enabled": false, "fp16_master_weights_and_grads": true}}\n',
            version="0.16.9",
            accepted=None,  # the judge is the newest release
        ),
        Example('{"train_batch_size": 1, "bf16": {"enabled": true, "bf16_master_weights_and_grads": false}}\n'),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 1}, "bf16": {"enabled": true, '
            '"bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each of the three switches at a stage that is not theirs."""
    for name in low_masters(context):
        key = context.known.key(name)
        if key is None or context.stage is None or context.stage in key.stages:
            continue
        path = master_path(context, name)
        stages = say(" or ").join(map(str, key.stages))
        yield context.finding(
            path,
            say(
                "DeepSpeed rejects this at ZeRO stage {stage}, which has no such master weights; it takes stage "
                "{stages}",
                stage=context.stage,
                stages=stages,
            ),
            fixes=[context.remove(path, say("Remove {path}", path=shown(path)), safe=False)],
        )
