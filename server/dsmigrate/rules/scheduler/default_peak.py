"""DS757: a warm-up to a default peak that is not the optimizer's learning rate."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.knowledge import Consumer
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import default_peak, schedule
from dsmigrate.rules.typed import given, params_path


@rule(
    "DS757",
    "default-peak",
    summary="A schedule without `warmup_max_lr`, which warms up to 0.001 and not to the optimizer's rate.",
    why="WarmupDecayLR has a peak of 0.001 when `warmup_max_lr` is left out, in every release, and WarmupLR had it "
    "before 0.17.2. The `lr` of the optimizer, or of `TrainingArguments`, is overwritten. 0.001 is far too high "
    "for most fine-tuning.",
    severity=Severity.WARNING,
    effect=Effect.DEFAULT,
    source=("deepspeed/runtime/lr_schedules.py:WarmupDecayLR.__init__",),
    keys=("scheduler.params",),
    examples=(
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 2e-5}}, '
            '"scheduler": {"type": "WarmupDecayLR", «"params"»: {"total_num_steps": 5000}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 2e-5}}, '
            '"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 5000, "warmup_max_lr": 2e-05}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 2e-5}}, '
            '"scheduler": {"type": "WarmupLR", «"params"»: {"warmup_num_steps": 100}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 2e-5}}, '
            '"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100, "warmup_max_lr": 2e-05}}}',
            version="0.17.1",
            accepted=None,  # a verdict of another release
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {}, "optimizer": {"type": "Adam", "params": {"lr": "auto"}}, '
            '"scheduler": {"type": "WarmupDecayLR", «"params"»: {"total_num_steps": "auto"}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {}, '
            '"optimizer": {"type": "Adam", "params": {"lr": "auto"}}, '
            '"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto", "warmup_max_lr": "auto"}}}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-3}}, '
            '"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 5000}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 2e-5}}, '
            '"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100}}}',
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a peak by default that is another rate than the optimizer's."""
    facts = schedule(context)
    parameter = None if facts is None else facts.parameters.get("warmup_max_lr")
    params = context.entry("scheduler.params")
    if facts is None or parameter is None or params is None or not isinstance(params.node, Object):
        return
    default = default_peak(context, parameter)
    if "warmup_max_lr" in given(context, "scheduler") or not isinstance(default, (int, float)):
        return
    rate = given(context, "optimizer").get("lr")
    if rate == default or (rate is None and context.has("optimizer")):
        return
    what = (
        say("the `lr` of the optimizer, {rate},", rate=json_text(rate))
        if rate is not None
        else say("the learning rate of the optimizer")
    )
    yield context.finding(
        params,
        say(
            "without `warmup_max_lr` {facts_name} warms up to {default}, and {what} has no effect",
            facts_name=facts.name,
            default=json_text(default),
            what=what,
        ),
        part="key",
        fixes=[_fix(context, rate)],
    )


def _fix(context: Context, rate: object) -> Fix | None:
    """Return the fix that warms up to the optimizer's rate, "auto" where the consumer fills both."""
    if context.consumer is Consumer.DEEPSPEED and not isinstance(rate, (int, float)):
        return None
    value = rate if isinstance(rate, (int, float)) else "auto"
    title = say("Warm up to {value}", value=json_text(value))
    return context.insert(params_path("scheduler", "warmup_max_lr"), value, title, safe=False)
