"""DS775: a schedule of torch where the engine has no torch optimizer for it."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import cannot_be_written, schedule, wraps_optimizer
from dsmigrate.rules.typed import is_here

_INSTEAD = {"CosineAnnealingLR": "WarmupCosineLR", "OneCycleLR": "OneCycle", "LinearLR": "WarmupLR"}
"""DeepSpeed's schedules of a similar shape, which work at every stage, where the release has them."""


@rule(
    "DS775",
    "torch-scheduler-with-wrapper",
    summary="A schedule of torch under ZeRO, fp16 or bf16, where it cannot be built.",
    why="The engine hands its own optimizer to the schedule. DeepSpeed's five reach through to the torch optimizer "
    "inside; the classes of torch accept only a genuine one, which the engine has at stage 0 in fp32 alone. Elsewhere "
    "it stops with `TypeError: DeepSpeedZeroOptimizer is not an Optimizer`. A function passed to "
    "`deepspeed.initialize(lr_scheduler=...)` gets the inner optimizer and works everywhere.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine._scheduler_from_config",
        "deepspeed/runtime/lr_schedules.py:get_torch_optimizer",
    ),
    keys=("scheduler.type", "zero_optimization.stage"),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, '
            '"optimizer": {"type": "Adam", "params": {"lr": 1e-3}}, '
            '"scheduler": {"type": «"CosineAnnealingLR"», "params": {"T_max": 1000}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "bf16": {"enabled": true}, '
            '"optimizer": {"type": "Adam", "params": {"lr": 1e-3}}, '
            '"scheduler": {"type": «"StepLR"», "params": {"step_size": 1000}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-3}}, '
            '"scheduler": {"type": "StepLR", "params": {"step_size": 1000}}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, '
            '"optimizer": {"type": "Adam", "params": {"lr": 1e-3}}, '
            '"scheduler": {"type": "WarmupLR", "params": {}}}',
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a schedule of torch where the optimizer is wrapped."""
    facts = schedule(context)
    wrapped = wraps_optimizer(context)
    if facts is None or not facts.torch or wrapped is None or cannot_be_written(facts):
        return
    close = _INSTEAD.get(facts.name)
    there = context.known.scheduler(close) if close else None
    if there is None or not is_here(there, context):
        close = None
    instead = f"`{close}`" if close else say("one of DeepSpeed's five")
    yield context.finding(
        "scheduler.type",
        say(
            "torch's {facts_name} accepts a plain optimizer only, and with {wrapped} the engine wraps it: it "
            "stops with a `TypeError`; use {instead}, or pass a function as `lr_scheduler` to "
            "`deepspeed.initialize`",
            facts_name=facts.name,
            wrapped=wrapped,
            instead=instead,
        ),
    )
