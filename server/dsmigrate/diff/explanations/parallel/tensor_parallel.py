"""AutoTP: the layers of a model over several ranks."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.effects import effects_of
from dsmigrate.diff.features import settings
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN

_SIZE = "tensor_parallel.autotp_size"
_ALL = (Effect.NUMERICS, Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED, Effect.CHECKPOINT)


@explanation(
    "DF801",
    "tensor-parallel",
    summary="AutoTP splits the layers of the model over another number of ranks, or by other rules.",
    why=(
        "With `autotp_size` N each rank holds a share of the split layers, and sums of activations travel in every"
        " forward and backward pass. Layers that no rule matches stay whole. Ranks of a group see the same batch, but"
        " without an `mpu` the batch equation counts them all: the real global batch is 1/N of the stated one."
    ),
    source=(
        "deepspeed/runtime/tensor_parallel/config.py:TPTrainingConfig",
        "deepspeed/runtime/engine.py:DeepSpeedEngine",
        "deepspeed/checkpoint/ds_to_universal.py",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "tensor_parallel": {"autotp_size": 4}}',
            "AutoTP splits the linear layers over 4 ranks: each holds about 1/4 of them, and activations are summed"
            " over the group in every pass; without an `mpu` only 1/4 of the stated batch is real",
            paths=(_SIZE,),
            effects=_ALL,
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "tensor_parallel": {"autotp_size": 2}}',
            '{"train_batch_size": 8}',
            "AutoTP no longer splits the layers: every rank holds them whole, previously 1/2 of them",
        ),
        Example(
            '{"train_batch_size": 8, "tensor_parallel": {"autotp_size": 2}}',
            '{"train_batch_size": 8, "tensor_parallel": {"autotp_size": 2, "preset_model": "llama"}}',
            'AutoTP splits by other rules: `preset_model` null → "llama" (built-in set of split rules for a model',
            paths=("tensor_parallel.preset_model",),
            effects=(Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED, Effect.CHECKPOINT),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "tensor_parallel": {"preset_model": "llama"}}',
            "Does nothing: AutoTP is off while `tensor_parallel.autotp_size` is below 2",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example('{"train_batch_size": 8}', '{"train_batch_size": 8, "tensor_parallel": {"autotp_size": 0}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield over how many ranks, and by which rules, layers are split now."""
    found = list(pair.live("tensor_parallel"))
    before, after = _size(pair.old), _size(pair.new)
    if not found or before is None or after is None:
        return
    every = [change.path for change in found]
    if before == after == 1:
        message = say("Does nothing: AutoTP is off while `{size}` is below 2", size=_SIZE)
        yield pair.says(*every, effects=(Effect.NONE,), severity=Severity.NONE, message=message)
    elif before != after:
        yield pair.says(
            *sorted(every, key=lambda path: path != _SIZE),
            effects=_ALL,
            severity=Severity.WARNING,
            message=_message(before, after),
            advice=say("A checkpoint of the other size has to become a universal one first"),
            brief=say("tensor parallel {before} → {after}", before=before, after=after),
        )
    else:
        touched = {effect for path in every for effect in effects_of(pair, path)} - {Effect.NONE}
        yield pair.says(
            *every,
            effects=tuple(effect for effect in Effect if effect in touched) or (Effect.NONE,),
            severity=Severity.INFO if touched else Severity.NONE,
            message=say("AutoTP splits by other rules: {settings}", settings=settings(pair, found)),
            brief=say("other rules of AutoTP") if touched else "",
        )


def _message(before: int, after: int) -> str:
    if after == 1:
        return say(
            "AutoTP no longer splits the layers: every rank holds them whole, previously 1/{before} of them",
            before=before,
        )
    was = say(" instead of {before}", before=before) if before > 1 else ""
    return say(
        "AutoTP splits the linear layers over {after} ranks{was}: each holds about 1/{after} of them, "
        "and activations are summed over the group in every pass; without an `mpu` only 1/{after} of the "
        "stated batch is real",
        after=after,
        was=was,
    )


def _size(side: Side) -> int | None:
    value = side.value(_SIZE)
    if value is UNKNOWN:
        return None
    return max(1, int(value)) if isinstance(value, (int, float)) else 1
