"""DS437: quantized gradients without reduce-scatter."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZERO, switched_off, switched_on

_KEY = f"{ZERO}.zero_quantized_gradients"
_SCATTER = f"{ZERO}.reduce_scatter"


@rule(
    "DS437",
    "quantized-gradients-scatter",
    summary="`zero_quantized_gradients` at stage 3 with `reduce_scatter` false, which the engine refuses.",
    why="The 4-bit exchange replaces the reduce-scatter of stage 3 and asserts that it is on.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/zero/stage3.py:DeepSpeedZeroOptimizer_Stage3",),
    keys=(_KEY, _SCATTER),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": '
            '{"stage": 3, "zero_quantized_gradients": true, "reduce_scatter": «false»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 3, "zero_quantized_gradients": true}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "optimizer": {"type": "Muon", "params": {"lr": 0.02}}, "zero_optimization": '
            '{"stage": 3, "zero_quantized_gradients": true, "reduce_scatter": «false»}}\n',
            fixed='{"train_batch_size": 1, "optimizer": {"type": "Muon", "params": {"lr": 0.02}}, "zero_optimization": '
            '{"stage": 3, "reduce_scatter": false}}\n',
        ),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 3, "zero_quantized_gradients": true}}\n'),
        Example(
            '{"train_batch_size": 1, "zero_optimization": '
            '{"stage": 3, "zero_quantized_gradients": false, "reduce_scatter": false}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the switch that is off."""
    entry = switched_off(context, _SCATTER)
    if context.stage != 3 or entry is None or switched_on(context, _KEY) is None:
        return
    yield context.finding(
        entry,
        say("false is refused together with {key}", key=shown(_KEY)),
        fixes=[
            context.remove(_KEY, say("Remove {key}", key=shown(_KEY)), safe=False)  # Muon at stage 3 needs it off
            if _is_muon(context)
            else context.remove(entry, say("Remove {scatter}", scatter=shown(_SCATTER)), safe=True)
        ],
        related=[(_KEY, say("needs reduce-scatter"))],
    )


def _is_muon(context: Context) -> bool:
    facts = context.type_of("optimizer")
    return facts is not None and facts.name == "Muon"
