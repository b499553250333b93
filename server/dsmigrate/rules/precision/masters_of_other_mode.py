"""DS328: low-precision master weights for a mode that is off."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.precision._shared import (
    BF16_MASTERS,
    FP16_MASTERS,
    low_masters,
    master_path,
    mode,
    refused_masters,
    uses_bf16_optimizer,
)
from dsmigrate.rules.registry import rule


@rule(
    "DS328",
    "masters-of-another-mode",
    summary="Master weights in the format of a mode that is off.",
    why="The switches act without regard to `enabled` in their section: an fp32 or bf16 model then gets float16 "
    "master weights, or an fp32 or fp16 model bfloat16 ones, and updates too small for that format vanish.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=("deepspeed/runtime/base_optimizer.py:_configure_master_weights",),
    keys=(FP16_MASTERS, BF16_MASTERS),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2}, '
            '"bf16": {"bf16_master_weights_and_grads": «true», "bf16_optimizer_states": true}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.1}}, '
            '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, '
            '"bf16": {"enabled": true}, "fp16": {"fp16_master_weights_and_grads": «true»}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true, '
            '"bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a switch of the other format than the weights."""
    weights = mode(context)
    if weights is None or not context.stage or uses_bf16_optimizer(context) or refused_masters(context):
        return
    for key, own in ((FP16_MASTERS, "fp16"), (BF16_MASTERS, "bf16")):
        if key in low_masters(context) and weights != own:
            yield context.finding(
                master_path(context, key),
                say(
                    "acts although {own} is off: the {weights} weights of this run get {own} master copies",
                    own=own,
                    weights=weights,
                ),
            )
