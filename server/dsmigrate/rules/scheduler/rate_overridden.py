"""DS755: a learning rate of the optimizer that the schedule replaces by another one."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import schedule
from dsmigrate.rules.typed import given, params_path

_RATES = ("lr", "muon_lr", "adam_lr")


@rule(
    "DS755",
    "rate-overridden",
    summary="A learning rate of the optimizer that `warmup_max_lr` replaces by another value.",
    why="`warmup_max_lr` becomes the peak of every parameter group; the `lr` of the optimizer is overwritten "
    "before the first step and never comes back. The two rates of Muon are levelled with it. Without "
    "`warmup_max_lr` WarmupLR (since 0.17.2) warms each group up to its own rate, as WarmupCosineLR always does, "
    "so the rate stands in one place.",
    severity=Severity.WARNING,
    effect=Effect.OVERRIDDEN,
    source=("deepspeed/runtime/lr_schedules.py:WarmupLR.__init__", "deepspeed/runtime/lr_schedules.py:update_lr"),
    keys=("scheduler.params", "optimizer.params"),
    examples=(
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {«"lr": 3e-5»}}, '
            '"scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-3}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 0.001}}, '
            '"scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-3}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"muon_lr": 0.02, «"adam_lr": 3e-4»}}, '
            '"scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.02}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"muon_lr": 0.02, "adam_lr": '
            '0.02}}, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.02}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-3}}, '
            '"scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.001}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 3e-5}}, '
            '"scheduler": {"type": "WarmupLR", "params": {}}}',
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each rate that differs from the peak."""
    facts = schedule(context)
    if facts is None or "warmup_max_lr" not in facts.parameters:
        return
    top = given(context, "scheduler").get("warmup_max_lr")
    params = given(context, "optimizer")
    if not isinstance(top, (int, float)):
        return
    rates = {name: rate for name in _RATES if isinstance(rate := params.get(name), (int, float))}
    for name, rate in rates.items():
        if rate == top:
            continue
        path = params_path("optimizer", name)
        yield context.finding(
            path,
            say(
                "{name} {rate} has no effect: {facts_name} warms up to `warmup_max_lr`, {top}",
                name=shown(name),
                rate=json_text(rate),
                facts_name=facts.name,
                top=json_text(top),
            ),
            part="member",
            fixes=[
                context.replace(path, top, say("Write {top}, which it is", top=json_text(top)), safe=True),
                context.replace(
                    params_path("scheduler", "warmup_max_lr"),
                    rate,
                    say("Warm up to {rate}", rate=json_text(rate)),
                    safe=False,
                )
                if set(rates.values()) == {rate}
                else None,
            ],
            related=[(params_path("scheduler", "warmup_max_lr"), say("the peak of every group"))],
        )
