"""DS422: contiguous gradients that offload switches on again."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import OPTIMIZER_DEVICE, ZERO, offloads_optimizer, switched_off

_KEY = f"{ZERO}.contiguous_gradients"


@rule(
    "DS422",
    "contiguous-forced",
    summary="`contiguous_gradients` false, which optimizer offload at stage 1 and 2 overrides.",
    why="Stage 1 and 2 copy offloaded gradients out of the contiguous buffer, so offload switches it on whatever "
    "the key says, "
    "without a message.",
    severity=Severity.WARNING,
    effect=Effect.OVERRIDDEN,
    source=("deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer",),
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": '
            '{"stage": 2, "offload_optimizer": {"device": "cpu"}, "contiguous_gradients": «false»}}\n',
            fixed='{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, '
            '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}\n',
        ),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 2, "contiguous_gradients": false}}\n'),
        Example(
            '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": '
            '{"stage": 3, "offload_optimizer": {"device": "cpu"}, "contiguous_gradients": false}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding where offload forces the buffer."""
    entry = switched_off(context, _KEY)
    if entry is None or context.stage not in {1, 2} or not offloads_optimizer(context):
        return
    yield context.finding(
        entry,
        say("optimizer offload at stage {stage} switches contiguous gradients on again", stage=context.stage),
        fixes=[context.remove(entry, say("Remove {key}", key=shown(_KEY)), safe=True)],
        related=[(OPTIMIZER_DEVICE, say("offloaded here"))] if context.has(OPTIMIZER_DEVICE) else [],
    )
