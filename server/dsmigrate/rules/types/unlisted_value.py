"""DS123: a value that is not in the closed list of its key."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import mark, say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.types._shared import verdicts
from dsmigrate.rules.types._values import mend, shown_value
from dsmigrate.rules.types._verdict import Kind

_AFTER = {
    Effect.REJECTED: mark("DeepSpeed rejects it"),
    Effect.CRASH: mark("DeepSpeed takes it here and fails where it is used"),
    Effect.MISREAD: mark("DeepSpeed takes it without a check"),
}


@rule(
    "DS123",
    "unlisted-value",
    summary="A value that is not one of those the key takes.",
    why=(
        'Most closed lists are case-sensitive: `"CPU"` is no device, `"BF16"` no `torch_autocast.dtype`. DeepSpeed'
        " raises a `ValidationError` or `ValueError`, when the config is read or when the engine is built; keys without"
        " a check keep the value until something compares it."
    ),
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/zero/offload_config.py:OffloadDeviceEnum",
        "deepspeed/runtime/config.py:get_communication_data_type",
    ),
    keys=("zero_optimization.stage", "zero_optimization.offload_optimizer.device", "communication_data_type"),
    examples=(
        Example(
            """{
  train_batch_size: 8
  zero_optimization: {
    stage: 2
    offload_optimizer: {
      device: «None»
    }
  }
}
""",
            fixed="""{
  train_batch_size: 8
  zero_optimization: {
    stage: 2
    offload_optimizer: {
      device: "none"
    }
  }
}
""",
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": «"CPU"»}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}',
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": «4»}}', accepted=False),
        Example(
            '{"train_batch_size": 8, "communication_data_type": «"bfp16"»}',
            fixed='{"train_batch_size": 8, "communication_data_type": "bf16"}',
        ),
        Example('{"train_batch_size": 8, "autotuning": {"tuner_type": «"grid"»}}'),
        Example('{"train_batch_size": 8, "communication_data_type": "FP16", "log_level": "INFO"}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each value outside a closed list."""
    for entry, key, node, verdict in verdicts(context, Kind.LISTED):
        value = node.value()
        yield context.finding(
            entry,
            say(
                "{value} is not {wanted}; {after}",
                value=shown_value(value),
                wanted=verdict.wanted,
                after=say(_AFTER[verdict.effect]),
            ),
            severity=Severity.ERROR if verdict.effect is Effect.REJECTED else Severity.WARNING,
            effect=verdict.effect,
            fixes=[mend(context, entry, key, value, safe=verdict.effect is Effect.REJECTED)],
        )
