"""`torch_adam`: torch's Adam instead of DeepSpeed's kernels."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.optimizer._built import PARAMS, built
from dsmigrate.diff.explanations.optimizer.kind import is_same
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.phrases import number
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say

_KEY = f"{PARAMS}.torch_adam"
_DECAY = f"{PARAMS}.weight_decay"
_ADAM = '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4'


@explanation(
    "DF606",
    "adam-kernel",
    summary="Adam's step runs in torch instead of DeepSpeed's kernel, or the other way round.",
    why=(
        "Both compute the same up to rounding; DeepSpeed's kernels are faster, on the host by far. What is not written"
        " differs: torch's AdamW decays by 0.01, DeepSpeed's classes by 0."
    ),
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine._configure_basic_optimizer",
        "deepspeed/ops/adam/fused_adam.py:FusedAdam",
    ),
    examples=(
        Example(
            _ADAM + ', "weight_decay": 0.1}}}',
            _ADAM + ', "weight_decay": 0.1, "torch_adam": true}}}',
            "Adam's step runs in `torch.optim.AdamW` instead of `FusedAdam`: the same up to rounding, and slower",
            paths=(_KEY,),
            effects=(Effect.NUMERICS, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            _ADAM + "}}}",
            _ADAM + ', "torch_adam": true}}}',
            "Adam's step runs in `torch.optim.AdamW` instead of `FusedAdam`, and weights decay by 0.01 × learning"
            " rate, which is torch's default, instead of 0",
            severity=Severity.WARNING,
        ),
        Example(
            _ADAM
            + ', "torch_adam": true}}, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}',
            _ADAM
            + ', "weight_decay": 0.01}}, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}',
            "Adam's step runs in `DeepSpeedCPUAdam` instead of `torch.optim.AdamW`: the same up to rounding, and"
            " faster",
        ),
        Example(_ADAM + "}}}", _ADAM + ', "torch_adam": false}}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield where the step runs now."""
    before, after = built(pair.old), built(pair.new)
    if pair.change(_KEY) is None or before is None or after is None or not is_same(pair):
        return
    torch = pair.new.is_on(_KEY)
    if torch is None or after.facts.takes_anything:
        return
    message = say(
        "Adam's step runs in `{class_name}` instead of `{class_name_2}`",
        class_name=after.class_name,
        class_name_2=before.class_name,
    )
    old, new = pair.values(_DECAY)
    moved = isinstance(old, (int, float)) and isinstance(new, (int, float)) and old != new
    if moved and _DECAY not in pair.changes:
        mine = say(", which is torch's default,") if torch else ""
        message += say(
            ", and weights decay by {new} × learning rate{mine} instead of {old}",
            new=number(new),
            mine=mine,
            old=number(old),
        )
    else:
        message += say(": the same up to rounding, and {word}", word=say("slower") if torch else say("faster"))
    yield pair.says(
        _KEY,
        *(path for path in (_DECAY,) if path in pair.changes and not moved),
        effects=(Effect.NUMERICS, Effect.SPEED),
        severity=Severity.WARNING if moved else Severity.INFO,
        message=message,
        brief=say("weight decay {old} → {new} with `torch_adam`", old=number(old), new=number(new))
        if moved
        else say("Adam of {word}", word=say("torch") if torch else say("DeepSpeed")),
    )
