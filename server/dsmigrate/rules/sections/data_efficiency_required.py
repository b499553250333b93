"""DS920: a data efficiency feature that is on without the keys it requires."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_SAMPLING, _LTD = "data_efficiency.data_sampling", "data_efficiency.data_routing.random_ltd"
_SCHEDULE = f"{_LTD}.random_ltd_schedule"
_REQUIRED: tuple[tuple[str, str, tuple[str, ...], Effect], ...] = (
    (f"{_SAMPLING}.curriculum_learning", f"{_SAMPLING}.curriculum_learning", ("curriculum_metrics",), Effect.REJECTED),
    (f"{_SAMPLING}.dynamic_batching", f"{_SAMPLING}.dynamic_batching", ("max_tokens",), Effect.REJECTED),
    (_LTD, _LTD, ("total_layer_num", "random_ltd_layer_num", "random_ltd_schedule"), Effect.REJECTED),
    (_LTD, _SCHEDULE, ("min_value", "max_value", "schedule_type", "schedule_config"), Effect.REJECTED),
    (_LTD, f"{_SCHEDULE}.schedule_config", ("require_steps", "seq_per_step"), Effect.CRASH),
)
"""Switch, section, the keys that the section must have while the switch is on, and what happens without one."""


@rule(
    "DS920",
    "data-efficiency-incomplete",
    summary="Curriculum learning, dynamic batching or random-LTD switched on without a key that it requires.",
    why="Reading the config asserts `curriculum_metrics` and `max_tokens`; building the engine looks the keys of "
    "`random_ltd` up without a default (`KeyError: 'total_layer_num'`), and the first forward pass those of its "
    "`schedule_config`.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/data_pipeline/config.py:get_curriculum_learning",
        "deepspeed/runtime/data_pipeline/config.py:get_dynamic_batching",
        "deepspeed/runtime/data_pipeline/data_routing/scheduler.py:RandomLTDScheduler",
    ),
    keys=(f"{_SAMPLING}.curriculum_learning.enabled", f"{_SAMPLING}.dynamic_batching.enabled", f"{_LTD}.enabled"),
    examples=(
        Example(
            '{"train_batch_size": 8, "data_efficiency": '
            '{"data_sampling": {«"curriculum_learning"»: {"enabled": true}}}}',
            accepted=False,
        ),
        Example(
            """{
  "train_batch_size": 8,
  "data_efficiency": {"data_routing": {"random_ltd": {
    "enabled": true,
    "total_layer_num": 12,
    "random_ltd_layer_num": 10,
    "random_ltd_schedule": {
      "min_value": 64, "max_value": 512, "schedule_type": "fixed_linear",
      «"schedule_config"»: {"seq_per_step": 16}
    }
  }}}
}
""",
            accepted=False,
        ),
        Example('{"train_batch_size": 8, "data_efficiency": {"data_routing": {"random_ltd": {"enabled": false}}}}'),
        Example(
            '{"train_batch_size": 8, "data_efficiency": '
            '{"data_sampling": {"dynamic_batching": {"enabled": true, "max_tokens": 4096}}}}'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at each section that lacks a key."""
    for switch, section, names, effect in _REQUIRED:
        entry = context.entry(section)
        if entry is None or not isinstance(entry.node, Object) or not context.is_on(f"{switch}.enabled"):
            continue
        missing = [name for name in names if entry.node.get(name) is None]
        if missing:
            yield context.finding(entry, _message(entry, missing, effect), part="key", effect=effect)


def _message(entry: Entry, missing: list[str], effect: Effect) -> str:
    when = say("DeepSpeed stops") if effect is Effect.REJECTED else say("The first forward pass fails")
    return say(
        "{when} without {missing} in `{name}`",
        when=when,
        missing=say(" and ").join(f"`{name}`" for name in missing),
        name=entry.name,
    )
