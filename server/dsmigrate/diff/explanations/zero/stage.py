"""The ZeRO stage: what is sharded, and what that makes GPUs send each other."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import STAGE, sends
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.zero import stage_text
from dsmigrate.languages import mark, say

_MORE = {
    1: mark(
        "master weights and optimizer states are sharded over the GPUs, and the updated weights gathered "
        "after each step"
    ),
    2: mark("each GPU keeps only its shard of the gradients, which are reduced in every micro-batch"),
    3: mark("each GPU keeps only its shard of the weights, which are gathered around their use in every micro-batch"),
}
"""What going up to a stage adds."""
_LESS = {
    0: mark("nothing is sharded, and gradients are all-reduced once per step"),
    1: mark("each GPU keeps all gradients until the step, and reduces them once"),
    2: mark("each GPU keeps all weights, and gathers them once per step"),
}
"""What going down to a stage brings back."""


@explanation(
    "DF402",
    "zero-stage",
    summary="Another ZeRO stage: what is sharded, and what each GPU sends for a step.",
    why=(
        "Counting an all-reduce as 2Ψ elements per GPU, a step sends 2Ψ at stage 0, 3Ψ at stage 1, 2gΨ + Ψ at stage 2"
        " and 3gΨ at stage 3, with Ψ parameters and g micro-batches per step. The paper counts less: since 0.12.4 stage"
        " 1 and 2 all-reduce their buckets by default, and stage 2 reduces in every micro-batch. Stage 3 sends less for"
        " what stays gathered between forward and backward, which is all of a model below half of"
        " `stage3_max_reuse_distance`."
    ),
    source=(
        "deepspeed/runtime/engine.py:allreduce_gradients",
        "deepspeed/runtime/zero/stage_1_and_2.py:average_tensor",
        "deepspeed/runtime/zero/partitioned_param_coordinator.py:release_sub_module",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3}}',
            "ZeRO-3 instead of ZeRO-2: each GPU keeps only its shard of the weights, which are gathered around their"
            " use in every micro-batch",
            paths=(STAGE,),
            effects=(Effect.COMMUNICATION, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4,'
            ' "zero_optimization": {"stage": 1}}',
            '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4,'
            ' "zero_optimization": {"stage": 2}}',
            "ZeRO-2 instead of ZeRO-1: each GPU keeps only its shard of the gradients, which are reduced in every"
            " micro-batch; each GPU sends about 9Ψ elements per step instead of 3Ψ",
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1,'
            ' "zero_optimization": {"stage": 2}}',
            '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1,'
            ' "zero_optimization": {"stage": 3}}',
            "ZeRO-3 instead of ZeRO-2: each GPU keeps only its shard of the weights, which are gathered around their"
            " use in every micro-batch; each GPU sends about 1.96 GiB per step instead of 2.93 GiB",
            world_size=8,
            parameters=300_000_000,
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 64,'
            ' "zero_optimization": {"stage": 2}}',
            '{"train_micro_batch_size_per_gpu": 64, "gradient_accumulation_steps": 1}',
            "ZeRO off instead of ZeRO-2: nothing is sharded, and gradients are all-reduced once per step; each GPU"
            " sends about 2Ψ elements per step instead of 129Ψ",
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            '{"train_batch_size": 8}',
            "ZeRO off instead of ZeRO-2: nothing is sharded, and gradients are all-reduced once per step",
        ),
        Example('{"train_batch_size": 8}', '{"train_batch_size": 8, "zero_optimization": {"stage": 0}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what the new stage does where it is another one."""
    before, after = pair.old.context.stage, pair.new.context.stage
    if pair.change(STAGE) is None or before is None or after is None or before == after:
        return
    old, new = stage_text(pair.old.context), stage_text(pair.new.context)
    what = _MORE[after] if after > before else _LESS[after]
    volume = sends(pair)
    yield pair.says(
        STAGE,
        effects=(Effect.COMMUNICATION, Effect.SPEED),
        severity=Severity.INFO,
        message=say(
            "{new} instead of {old}: {what}{more}",
            new=new,
            old=old,
            what=say(what),
            more=say("; {volume}", volume=volume) if volume else "",
        ),
        brief=f"{old} → {new}",
    )
