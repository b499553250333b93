"""What `load_checkpoint` can read."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say

_UNIVERSAL = "checkpoint.load_universal"
_ZERO = '{"train_batch_size": 8, "zero_optimization": {"stage": 2}'


@explanation(
    "DF811",
    "universal-checkpoint",
    summary="`load_checkpoint` begins or ceases to read universal checkpoints, and reads no others meanwhile.",
    why=(
        "A universal checkpoint is made of an ordinary one by `ds_to_universal.py` and fits another number of ranks,"
        " and stage 2 where it was written at stage 1; between stage 3 and the others it does not carry over. While"
        " the switch is on, ordinary checkpoints cannot be loaded. Saving is not affected."
    ),
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine.load_checkpoint",
        "deepspeed/checkpoint/ds_to_universal.py",
    ),
    examples=(
        Example(
            _ZERO + "}",
            _ZERO + ', "checkpoint": {"load_universal": true}}',
            "`load_checkpoint` reads universal checkpoints alone, and no ordinary one any more",
            paths=(_UNIVERSAL,),
            effects=(Effect.CHECKPOINT,),
            severity=Severity.WARNING,
        ),
        Example(
            _ZERO + ', "checkpoint": {"load_universal": true}}',
            _ZERO + "}",
            "`load_checkpoint` reads ordinary checkpoints again, and no universal one any more",
        ),
        Example(_ZERO + "}", _ZERO + ', "checkpoint": {"load_universal": false}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield which checkpoints load now."""
    before, after = pair.old.is_on(_UNIVERSAL), pair.new.is_on(_UNIVERSAL)
    if pair.change(_UNIVERSAL) is None or before is after or None in (before, after):
        return
    yield pair.says(
        _UNIVERSAL,
        effects=(Effect.CHECKPOINT,),
        severity=Severity.WARNING,
        message=say("`load_checkpoint` reads universal checkpoints alone, and no ordinary one any more")
        if after
        else say("`load_checkpoint` reads ordinary checkpoints again, and no universal one any more"),
        advice=say("Switch it off again once the run has saved a checkpoint of its own") if after else "",
        brief=say("loads {word} checkpoints", word=say("universal") if after else say("ordinary")),
    )
