"""The strength of the weight decay."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.optimizer._built import PARAMS, Decay, built
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.phrases import number
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.knowledge import MISSING
from dsmigrate.languages import say

_KEY = f"{PARAMS}.weight_decay"
_ADAM = '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4'


@explanation(
    "DF604",
    "weight-decay",
    summary="Weights decay faster or slower, or begin or cease to.",
    why=(
        "A decay that is decoupled shrinks every weight by `lr * weight_decay` per step; as an L2 term it adds"
        " `weight_decay` times the weight to its gradient. DeepSpeed's Adam does not decay unless the key is written;"
        " torch's AdamW, which `torch_adam` builds, decays by 0.01. Parameter groups of the script keep a decay of"
        " their own."
    ),
    source=(
        "deepspeed/ops/adam/fused_adam.py:FusedAdam",
        "deepspeed/ops/adam/cpu_adam.py:DeepSpeedCPUAdam",
        "deepspeed/runtime/engine.py:DeepSpeedEngine._configure_basic_optimizer",
    ),
    examples=(
        Example(
            _ADAM + ', "weight_decay": 0.01}}}',
            _ADAM + ', "weight_decay": 0.1}}}',
            "A step shrinks every weight by 0.1 × learning rate instead of 0.01 × learning rate",
            paths=(_KEY,),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
        ),
        Example(
            _ADAM + "}}}", _ADAM + ', "weight_decay": 0.1}}}', "Weights decay now: a step shrinks every one by 0.1 ×"
        ),
        Example(
            _ADAM + ', "weight_decay": 0.1}}}',
            _ADAM + "}}}",
            "Weights no longer decay, previously by 0.1 × learning rate",
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"weight_decay": 0.01}}}',
            '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"weight_decay": 0.001}}}',
            "Each gradient gets 0.001 × weight added instead of 0.01 × weight",
        ),
        Example(
            _ADAM + ', "torch_adam": true, "weight_decay": 0.01}}}',
            _ADAM + ', "torch_adam": true}}}',
            "",
        ),
        Example(_ADAM + ', "weight_decay": 0.0}}}', _ADAM + ', "weight_decay": 0}}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield how fast weights decay now."""
    old, new = built(pair.old), built(pair.new)
    before, after = pair.values(_KEY)
    if old is None or new is None or pair.change(_KEY) is None or new.decay is None:
        return
    if not isinstance(before, (int, float)) or not isinstance(after, (int, float)) or before == after:
        return
    unit = say("learning rate") if new.decay is Decay.DECOUPLED else say("weight")
    was, now = f"{number(before)} × {unit}", f"{number(after)} × {unit}"
    shrinks = new.decay is Decay.DECOUPLED
    if not before:
        message = (
            say("Weights decay now: a step shrinks every one by {now}", now=now)
            if shrinks
            else say("Weights decay now: each gradient gets {now} added", now=now)
        )
    elif not after:
        message = (
            say("Weights no longer decay, previously by {was}", was=was)
            if shrinks
            else say("Weights no longer decay, previously by {was} added to each gradient", was=was)
        )
    elif shrinks:
        message = say("A step shrinks every weight by {now} instead of {was}", now=now, was=was)
    else:
        message = say("Each gradient gets {now} added instead of {was}", now=now, was=was)
    default = pair.changes[_KEY].new is MISSING and bool(after)
    yield pair.says(
        _KEY,
        effects=(Effect.NUMERICS,),
        severity=Severity.WARNING,
        message=say("{message}, the default", message=message) if default else message,
        brief=say("weight decay {before} → {after}", before=number(before), after=number(after)),
    )
