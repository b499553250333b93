"""`adam_w_mode`: whether Adam's decay is decoupled or goes through the gradient."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.optimizer._built import PARAMS, TYPE, built, decays
from dsmigrate.diff.explanations.optimizer.kind import is_same
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say

_KEY = f"{PARAMS}.adam_w_mode"
_ADAM = '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-4, "weight_decay": 0.1'


@explanation(
    "DF602",
    "decay-form",
    summary="The weight decay of Adam becomes decoupled, or an L2 term of the gradient.",
    why=(
        "Decoupled, a step shrinks every weight by `lr * weight_decay`, whatever the gradients were. As an L2 term the"
        " decay is added to the gradient and divided with it by the second moment, so that weights with large"
        " gradients decay less. Without decay both are the same."
    ),
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine._configure_basic_optimizer",
        "deepspeed/ops/adam/fused_adam.py",
    ),
    examples=(
        Example(
            _ADAM + "}}}",
            _ADAM + ', "adam_w_mode": false}}}',
            "Weight decay is added to the gradient (L2), previously decoupled from the gradient",
            paths=(_KEY,),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
        ),
        Example(
            _ADAM.replace("0.1", "0") + "}}}",
            _ADAM.replace("0.1", "0") + ', "adam_w_mode": false}}}',
            "Weight decay is added to the gradient (L2), previously decoupled from the gradient; nothing decays"
            " here, so it"
            " concerns only groups of the script that decay",
            severity=Severity.INFO,
        ),
        Example(
            _ADAM.replace('"Adam"', '"AdamW"') + "}}}",
            _ADAM.replace('"Adam"', '"AdamW"') + ', "adam_w_mode": false}}}',
            "Does nothing: under the name AdamW the decay is decoupled whatever it says",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(_ADAM + "}}}", _ADAM + ', "adam_w_mode": true}}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield the form of the decay where the switch changes it."""
    before, after = built(pair.old), built(pair.new)
    if pair.change(_KEY) is None or before is None or after is None or not is_same(pair):
        return
    if before.decay is after.decay:
        if {before.facts.name, after.facts.name} == {"AdamW"}:
            message = say("Does nothing: under the name AdamW the decay is decoupled whatever it says")
            yield pair.says(_KEY, effects=(Effect.NONE,), severity=Severity.NONE, message=message)
        return
    if pair.change(TYPE) is not None or before.decay is None or after.decay is None:
        return
    acts = decays(pair.old) or decays(pair.new)
    idle = say("; nothing decays here, so it concerns only groups of the script that decay")
    yield pair.says(
        _KEY,
        effects=(Effect.NUMERICS,),
        severity=Severity.WARNING if acts else Severity.INFO,
        message=say(
            "Weight decay is {decay}, previously {decay_2}{what}",
            decay=say(after.decay.value),
            decay_2=say(before.decay.value),
            what="" if acts else idle,
        ),
        brief=say("weight decay {decay}", decay=say(after.decay.value)),
    )
