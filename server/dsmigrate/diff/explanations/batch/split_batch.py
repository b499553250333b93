"""The same effective batch in other pieces: micro-batch and accumulation."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dsmigrate.diff.explanations.batch._effective import Effective, effective, other_ranks, ratio
from dsmigrate.diff.explanations.batch.effective_batch import changed
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.phrases import as_many
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say


@explanation(
    "DF202",
    "batch-split",
    summary="An optimizer step takes the same samples in larger or smaller micro-batches.",
    why=(
        "Micro-batch and accumulation trade memory for speed. The sum of the gradients is the same up to rounding as"
        " long as the loss of a micro-batch is the mean over its samples; a mean over tokens of unequal sequences, or"
        " a batch norm, weighs the samples otherwise. ZeRO 2 and 3 reduce gradients in every pass, ZeRO 0 and 1 once"
        " per step."
    ),
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine.backward",
        "deepspeed/runtime/engine.py:DeepSpeedEngine.allreduce_gradients",
    ),
    examples=(
        Example(
            '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}',
            '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 1}',
            "The same 32 samples per optimizer step in 1 micro-batch of 8 per GPU instead of 2 micro-batches of 4",
            paths=("train_micro_batch_size_per_gpu", "gradient_accumulation_steps"),
            effects=(Effect.NUMERICS, Effect.MEMORY, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}}',
            '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2}}',
            "The same 32 samples per optimizer step, 2 in each micro-batch instead of 4: twice as many micro-batches;"
            " ZeRO-2 reduces gradients in every micro-batch",
            effects=(Effect.NUMERICS, Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED),
        ),
        Example('{"train_batch_size": 32}', '{"train_micro_batch_size_per_gpu": 8}', "", world_size=4),
        Example(
            '{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1}',
            '{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 16, "gradient_accumulation_steps": 1}',
            "The same 16 samples per optimizer step in 1 micro-batch of 16 per GPU instead of 1 micro-batch of 1, on 1"
            " rank instead of 16",
        ),
        Example('{"train_batch_size": 32}', '{"train_batch_size": 64}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield in which pieces the same samples come now."""
    paths = changed(pair)
    old, new = effective(pair.old), effective(pair.new)
    if not paths or old is None or new is None or ratio(old, new) != 1 or _pieces(old) == _pieces(new):
        return
    stage = pair.new.context.stage
    reduces = stage if stage in {2, 3} and pair.old.context.stage == stage and old.steps != new.steps else None
    effects = [Effect.NUMERICS, Effect.MEMORY, *([Effect.COMMUNICATION] if reduces else []), Effect.SPEED]
    yield pair.says(
        *paths,
        effects=tuple(effects),
        severity=Severity.INFO,
        message=say(
            "The same {text} samples per optimizer step{how}{other_ranks}",
            text=new.text,
            how=_how(old, new),
            other_ranks=other_ranks(pair),
        )
        + (say("; ZeRO-{reduces} reduces gradients in every micro-batch", reduces=reduces) if reduces else ""),
        brief=say("same batch in {brief} instead of {brief_2}", brief=_brief(new), brief_2=_brief(old)),
    )


def _how(old: Effective, new: Effective) -> str:
    """Return in which pieces; where the passes of a step depend on the world size, how many more or fewer there are."""
    ratio_ = _passes(old, new)
    if ratio_ is None:
        return say(" in {pieces} per GPU instead of {pieces_2}", pieces=_pieces(new), pieces_2=_pieces(old))
    return say(
        ", {micro} in each micro-batch instead of {micro_2}: {as_many} micro-batches",
        micro=new.micro,
        micro_2=old.micro,
        as_many=as_many(ratio_),
    )


def _passes(old: Effective, new: Effective) -> Fraction | None:
    """Return how many passes a step has for each one before; None where they are numbers, or unknown."""
    (before, steps), (after, others) = old.sizes, new.sizes
    if before is None or not after or steps is not None or others is not None:
        return None
    return Fraction(before) / Fraction(after)


def _brief(batch: Effective) -> str:
    return (
        _pieces(batch)
        if batch.steps.isdecimal() or batch.sizes[0] is None
        else say("micro-batches of {micro}", micro=batch.micro)
    )


def _pieces(batch: Effective) -> str:
    return say(
        "{steps} {en_word} of {micro}",
        steps=batch.steps,
        en_word="micro-batch" if batch.steps == "1" else "micro-batches",
        micro=batch.micro,
    )
