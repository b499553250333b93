"""DS230: ZenFlow replaces the accumulation by its update interval."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import MISSING
from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import STEPS, given
from dsmigrate.rules.context import UNKNOWN, Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_SECTION = "zero_optimization.zenflow"
_INTERVAL = f"{_SECTION}.update_interval"


@rule(
    "DS230",
    "zenflow-accumulation",
    summary="ZenFlow overwrites `gradient_accumulation_steps` with its `update_interval`.",
    why="After the batch keys have been checked, the engine sets the accumulation to `zenflow.update_interval`, or "
    'to 0 when that is `"auto"`, its default. The effective batch is then another one than `train_batch_size` says.',
    severity=Severity.WARNING,
    effect=Effect.OVERRIDDEN,
    source=("deepspeed/runtime/zenflow/engine.py:configure_zenflow",),
    keys=(STEPS, _INTERVAL),
    examples=(
        Example(
            """{
  "train_micro_batch_size_per_gpu": 1,
  "gradient_accumulation_steps": «2»,
  "optimizer": {"type": "AdamW", "params": {"lr": 0.001}},
  "zero_optimization": {
    "stage": 2,
    "offload_optimizer": {"device": "cpu"},
    "zenflow": {"update_interval": 4}
  }
}
""",
        ),
        Example(
            """{
  "train_micro_batch_size_per_gpu": 1,
  "gradient_accumulation_steps": 4,
  "optimizer": {"type": "AdamW", "params": {"lr": 0.001}},
  "zero_optimization": {
    "stage": 2,
    "offload_optimizer": {"device": "cpu"},
    "zenflow": {"update_interval": 4}
  }
}
""",
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at an accumulation that is not ZenFlow's interval."""
    if given(context, _SECTION) is None or context.raw(_SECTION) is None:
        return
    steps, interval = context.value(STEPS), context.value(_INTERVAL)
    if steps in (MISSING, None, UNKNOWN) or steps == interval or not isinstance(steps, (int, float)):
        return
    becomes = say("decided during training") if isinstance(interval, str) else str(interval)
    yield context.finding(
        STEPS,
        say(
            "ZenFlow replaces {steps} by its `update_interval`: the accumulation is {becomes}",
            steps=steps,
            becomes=becomes,
        ),
        related=[(_INTERVAL, say("ZenFlow updates at this interval"))] if context.has(_INTERVAL) else [],
    )
