"""DS505: an offload section that names no device."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZERO, section


@rule(
    "DS505",
    "offload-without-device",
    summary="An offload section without `device`, which offloads nothing.",
    why='The presence of a section does not switch offload on: `device` is "none" unless set, since 0.5.7.',
    severity=Severity.WARNING,
    effect=Effect.DEFAULT,
    source=("deepspeed/runtime/zero/offload_config.py:DeepSpeedZeroOffloadOptimizerConfig",),
    keys=(f"{ZERO}.offload_optimizer", f"{ZERO}.offload_param"),
    examples=(
        Example(
            '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": '
            '{"stage": 2, «"offload_optimizer"»: {"pin_memory": true}}}\n',
            fixed='{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, '
            '"zero_optimization": '
            '{"stage": 2, "offload_optimizer": {"pin_memory": true, "device": "cpu"}}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "none", '
            '"pin_memory": true}}}\n'
        ),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 2, "offload_param": {}}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each section that would do something at this stage."""
    stages = {"offload_optimizer": {1, 2, 3}, "offload_param": {3}}
    for name, used in stages.items():
        entry = section(context, f"{ZERO}.{name}")
        if entry is None or context.stage not in used or context.has(f"{ZERO}.{name}.device"):
            continue
        kept = say("optimizer states stay") if name == "offload_optimizer" else say("parameters stay")
        yield context.finding(
            entry,
            say('{path} names no `device`, which is "none" then: {kept} on the GPU', path=shown(entry.path), kept=kept),
            part="key",
            fixes=[context.insert((*entry.path, "device"), "cpu", say("Offload to host memory"), safe=False)],
        )
