"""DS675: the switch for an old Apex FusedAdam."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.optimizer._shared import Build, build_of, optimizer
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import before

_BF16_SINCE = "0.17.6"
"""Since when the wrapper is the same for bf16 as for fp16."""


@rule(
    "DS675",
    "legacy-fusion",
    summary="`legacy_fusion` with 16-bit training without ZeRO, where today's FusedAdam refuses it.",
    why="The wrapper around FusedAdam for fp16 or bf16 at stage 0 then passes the gradients and the loss scale "
    "to `step`, as early releases of Apex expected. DeepSpeed's FusedAdam and current Apex raise `RuntimeError: "
    "FusedAdam has been updated` in the first step. Everywhere else the key is not looked at, as with bf16 "
    "before 0.17.6.",
    severity=Severity.ERROR,
    effect=Effect.CRASH,
    source=(
        "deepspeed/runtime/fp16/fused_optimizer.py:FP16_Optimizer",
        "deepspeed/ops/adam/fused_adam.py:FusedAdam.step",
    ),
    keys=("optimizer.legacy_fusion",),
    examples=(
        Example(
            '{"train_batch_size": 8, "bf16": {"enabled": true}, '
            '"optimizer": {"type": "Adam", «"legacy_fusion": true», "params": {"lr": 1e-4}}}',
            fixed='{"train_batch_size": 8, "bf16": {"enabled": true}, '
            '"optimizer": {"type": "Adam", "params": {"lr": 1e-4}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "legacy_fusion": true, "params": {"lr": 1e-4}}}'
        ),
        Example(
            '{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}, '
            '"optimizer": {"type": "Adam", "legacy_fusion": true, "params": {"lr": 1e-4}}}'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding where the switch reaches FusedAdam."""
    facts = optimizer(context)
    if facts is None or facts.name not in {"Adam", "AdamW"} or build_of(context, facts) is not Build.FUSED:
        return
    half = context.is_on("fp16.enabled") or (context.is_on("bf16.enabled") and not before(context, _BF16_SINCE))
    if not context.raw("optimizer.legacy_fusion") or context.stage != 0 or not half:
        return
    yield context.finding(
        "optimizer.legacy_fusion",
        say("`legacy_fusion` calls FusedAdam as early Apex releases did: the first step stops with a `RuntimeError`"),
        part="member",
        fixes=[context.remove("optimizer.legacy_fusion", say("Remove `legacy_fusion`"), safe=True)],
    )
