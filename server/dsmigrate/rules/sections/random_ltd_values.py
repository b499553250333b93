"""DS922: values of random-LTD that stop training, or drop every token."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_LTD = "data_efficiency.data_routing.random_ltd"
_SCHEDULE = f"{_LTD}.random_ltd_schedule"


@rule(
    "DS922",
    "random-ltd-values",
    summary="Values of random-LTD with which the engine does not start, the first step fails or no token is left.",
    why="The layer-token learning rate was never implemented: the object needs an `enabled`, and `true` there is a "
    "NotImplementedError. `require_steps` of 0 divides by zero. The kept length is rounded down to a multiple "
    "of `seq_per_step`, so a `min_value` below it means no tokens at all. The number of layers must be the "
    "length of the list.",
    severity=Severity.ERROR,
    effect=Effect.CRASH,
    source=(
        "deepspeed/runtime/data_pipeline/data_routing/scheduler.py:RandomLTDScheduler",
        "deepspeed/runtime/engine.py:DeepSpeedEngine.random_ltd_initialize",
    ),
    keys=(f"{_SCHEDULE}.min_value", f"{_LTD}.random_ltd_layer_num", f"{_LTD}.layer_token_lr_schedule"),
    examples=(
        Example(
            """{
  "train_batch_size": 8,
  "data_efficiency": {"data_routing": {"random_ltd": {
    "enabled": true,
    "total_layer_num": 12,
    "random_ltd_layer_num": «10»,
    "random_ltd_layer_id": [1, 2, 3],
    «"layer_token_lr_schedule"»: {},
    "random_ltd_schedule": {
      "min_value": «10», "max_value": 512, "schedule_type": "fixed_linear",
      "schedule_config": {"require_steps": «0», "seq_per_step": 16}
    }
  }}}
}
""",
            accepted=False,
        ),
        Example(
            """{
  "train_batch_size": 8,
  "data_efficiency": {"data_routing": {"random_ltd": {
    "enabled": true,
    "total_layer_num": 12,
    "random_ltd_layer_num": 3,
    "random_ltd_layer_id": [1, 2, 3],
    "random_ltd_schedule": {
      "min_value": 64, "max_value": 512, "schedule_type": "fixed_linear",
      "schedule_config": {"require_steps": 100, "seq_per_step": 16}
    }
  }}}
}
"""
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each such value while random-LTD is on."""
    if not context.is_on(f"{_LTD}.enabled"):
        return
    yield from _learning_rate(context)
    steps = f"{_SCHEDULE}.schedule_config.require_steps"
    if context.has(steps) and context.number(steps) == 0:
        yield context.finding(steps, say("0 steps are a division by zero in the first forward pass"))
    least, step = context.number(f"{_SCHEDULE}.min_value"), context.number(f"{_SCHEDULE}.schedule_config.seq_per_step")
    if least is not None and step is not None and least < step:
        yield context.finding(
            f"{_SCHEDULE}.min_value",
            say(
                "{least} is rounded down to a multiple of `seq_per_step` ({step}), that is to no tokens at all",
                least=least,
                step=step,
            ),
            severity=Severity.WARNING,
            effect=Effect.RISKY,
        )
    count, layers = context.number(f"{_LTD}.random_ltd_layer_num"), context.raw(f"{_LTD}.random_ltd_layer_id")
    if count is not None and isinstance(layers, list) and len(layers) != count:
        yield context.finding(
            f"{_LTD}.random_ltd_layer_num",
            say(
                "{count} layers are announced and {layers} are listed; `convert_to_random_ltd` raises a ValueError",
                count=count,
                layers=len(layers),
            ),
            severity=Severity.WARNING,
        )


def _learning_rate(context: Context) -> Iterator[Finding]:
    entry = context.entry(f"{_LTD}.layer_token_lr_schedule")
    if entry is None or not isinstance(entry.node, Object):
        return
    switch = entry.node.get("enabled")
    on = switch is not None and switch.node is not None and bool(switch.node.value())
    if switch is None or on:
        yield context.finding(
            entry,
            say("The layer-token learning rate is not implemented: the engine does not start ")
            + (say("with `enabled: true` here") if on else say("without `enabled: false` here, or without the object")),
            part="key",
            effect=Effect.REJECTED,
        )
