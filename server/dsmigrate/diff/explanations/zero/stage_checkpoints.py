"""Checkpoints of one stage at another."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import STAGE
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import mark, say

_BY_TEST = '{"train_batch_size": 8, "zero_optimization": {"stage": %d}}'
_SHARDED = 3
_UNIVERSAL = mark("a universal checkpoint carries over between stages 1 and 2, not into or out of stage 3")


@explanation(
    "DF403",
    "checkpoints-of-another-stage",
    summary="Checkpoints that were saved at the old stage do not load at the new one.",
    why=(
        "Stages 1 and 2 write the same files and load each other's. Stage 0 keeps optimizer states in the model file,"
        " stage 3 writes weights in shards as well. `load_checkpoint` across these borders ends in a FileNotFoundError,"
        " a TypeError or an AssertionError. `ds_to_universal.py` makes a checkpoint that stages 1 and 2 and any number"
        " of GPUs share; files of stage 3 are of another form than those of the others there too."
    ),
    source=(
        "deepspeed/runtime/engine.py:_load_checkpoint",
        "deepspeed/runtime/engine.py:_get_ckpt_name",
        "deepspeed/runtime/zero/stage3.py:load_state_dict",
        "deepspeed/checkpoint/ds_to_universal.py",
    ),
    examples=(
        Example(
            _BY_TEST % 2,
            _BY_TEST % 3,
            "Stage 2 checkpoints do not load at stage 3",
            paths=(STAGE,),
            effects=(Effect.CHECKPOINT,),
            severity=Severity.BREAKING,
        ),
        Example(_BY_TEST % 3, _BY_TEST % 1, "Stage 3 checkpoints do not load at stage 1"),
        Example(_BY_TEST % 0, _BY_TEST % 2, "Stage 0 checkpoints do not load at stage 2"),
        Example(_BY_TEST % 1, _BY_TEST % 2, ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield that old checkpoints do not load, and what can be carried over."""
    before, after = pair.old.context.stage, pair.new.context.stage
    if pair.change(STAGE) is None or before is None or after is None or _family(before) == _family(after):
        return
    yield pair.says(
        STAGE,
        effects=(Effect.CHECKPOINT,),
        severity=Severity.BREAKING,
        message=say("Stage {before} checkpoints do not load at stage {after}", before=before, after=after),
        advice=_way(before, after),
        brief=say("checkpoints of stage {before} no longer load", before=before),
    )


def _family(stage: int) -> int:
    return 1 if stage == 2 else stage


def _way(before: int, after: int) -> str:
    """Return how weights are carried over; optimizer states are not."""
    if before == _SHARDED:
        weights = say("`zero_to_fp32.py` makes a file of weights to load before `initialize`")
        return say("{weights}; optimizer states start anew: {universal}", weights=weights, universal=say(_UNIVERSAL))
    if after == _SHARDED:
        end = say(": {universal}", universal=say(_UNIVERSAL)) if before else ""
        return say(
            "Load the weights, `module` in `mp_rank_00_model_states.pt`, into the model before `initialize`; "
            "optimizer states start anew{end}",
            end=end,
        )
    return say("`load_checkpoint(…, load_module_only=True)` loads the weights; optimizer states start anew")
