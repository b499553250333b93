"""Whether a bf16 step with inf or NaN in its gradients is skipped."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say

_KEY = "bf16.check_grad_overflow"
_BF16 = '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true'


@explanation(
    "DF308",
    "overflow-check",
    summary="Steps whose bf16 gradients hold inf or NaN begin or cease to be skipped.",
    why=(
        "With the check, ZeRO 1 and 2 look for inf and NaN in the gradients, and all ranks skip such a step. Without it"
        " NaN reaches the weights and stays. Steps with finite gradients are the same. The check is the default since"
        " 0.19.3; ZeRO 3 and runs without ZeRO always have it."
    ),
    source=(
        "deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer.step",
        "deepspeed/runtime/engine.py:DeepSpeedEngine._configure_zero_optimizer",
    ),
    examples=(
        Example(
            _BF16 + "}}",
            _BF16 + ', "check_grad_overflow": false}}',
            "A step with inf or NaN in its gradients is no longer skipped: NaN reaches the weights",
            paths=(_KEY,),
            effects=(Effect.NUMERICS, Effect.SPEED),
            severity=Severity.WARNING,
        ),
        Example(
            _BF16 + "}}",
            _BF16 + "}}",
            "A step with inf or NaN in its gradients is skipped now; previously NaN reached the weights",
            old_version="0.19.2",
        ),
        Example(_BF16 + "}}", _BF16 + ', "check_grad_overflow": true}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what happens to such a step now."""
    before, after = pair.old.is_on(_KEY), pair.new.is_on(_KEY)
    if pair.change(_KEY) is None or before is after or not all(pair.lives(_KEY)):
        return
    yield pair.says(
        _KEY,
        effects=(Effect.NUMERICS, Effect.SPEED),
        severity=Severity.WARNING,
        message=say("A step with inf or NaN in its gradients is skipped now; previously NaN reached the weights")
        if after
        else say("A step with inf or NaN in its gradients is no longer skipped: NaN reaches the weights"),
        brief=say("steps with NaN skipped") if after else say("steps with NaN no longer skipped"),
    )
