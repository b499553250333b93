"""The format in which gradients travel."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.precision import WIDTHS, buckets_by_parameter, precision
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import DATA, SEQUENCE, degree, scatters
from dsmigrate.rules.precision._shared import AUTOCAST, dtype, mode

_KEY = "communication_data_type"
_SEQUENCE = "seq_parallel_communication_data_type"


@explanation(
    "DF307",
    "communication-format",
    summary="Gradients travel between ranks in another number format.",
    why=(
        "Gradients are cast before the reduction and back afterwards. Unset, they travel in the format of the training"
        " mode. The sum over ranks has the precision of what is sent; fp32 is twice as much as 16 bit. Under sequence"
        " parallelism `seq_parallel_communication_data_type` takes the place of `communication_data_type`, and with"
        " `torch_autocast` ZeRO chooses for each parameter."
    ),
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine.communication_data_type",
        "deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer.allreduce_bucket",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8, "bf16": {"enabled": true}}',
            '{"train_batch_size": 8, "bf16": {"enabled": true}, "communication_data_type": "fp32"}',
            "Gradients are sent in fp32 instead of bf16: twice the bytes",
            paths=(_KEY,),
            effects=(Effect.NUMERICS, Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "communication_data_type": "fp32"}',
            '{"train_batch_size": 8, "communication_data_type": "fp16"}',
            "Gradients are sent in fp16 instead of fp32: half the bytes, and sums that are rounded to 11 significant"
            " bits",
        ),
        Example(
            '{"train_batch_size": 8, "fp16": {"enabled": true}}',
            '{"train_batch_size": 8, "fp16": {"enabled": true}, "communication_data_type": "fp16"}',
            "Gradients are sent in fp16 either way, as the training mode has it",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "torch_autocast": {"enabled": true, "dtype":'
            ' "bf16"}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "torch_autocast": {"enabled": true, "dtype":'
            ' "bf16"}, "communication_data_type": "fp16"}',
            "Does nothing: with `torch_autocast` ZeRO sends each gradient in a format of its own",
            effects=(Effect.NONE,),
        ),
        Example(
            '{"train_batch_size": 8, "seq_parallel_communication_data_type": "bf16"}',
            '{"train_batch_size": 8}',
            "With the sequence parallelism of an `mpu` gradients are sent in fp32 instead of bf16; without it nothing"
            " changes",
            paths=(_SEQUENCE,),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "seq_parallel_communication_data_type": "bf16", "zero_optimization": {"stage":'
            " 2}}",
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            "Does nothing: under sequence parallelism the reduce-scatter of ZeRO 2 sends fp32",
            effects=(Effect.NONE,),
        ),
        Example(
            '{"train_batch_size": 8, "bf16": {"enabled": "auto"}}',
            '{"train_batch_size": 8, "bf16": {"enabled": "auto"}, "communication_data_type": "fp32"}',
            "Gradients are sent in fp32, whatever the training mode; previously in the format of the training mode",
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_batch_size": 8, "communication_data_type": "fp16"}',
            '{"train_batch_size": 8, "communication_data_type": "FP16"}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield in what format gradients travel now."""
    for path in (_KEY, _SEQUENCE):
        if pair.change(path) is not None:
            reason = _idle(pair, path)
            if reason:
                yield pair.says(path, effects=(Effect.NONE,), severity=Severity.NONE, message=reason)
            else:
                yield from (_of_ranks(pair) if path == _KEY else _of_sequences(pair))


def _of_ranks(pair: Pair) -> Iterator[Explained]:
    before, after = (precision(side.context).communication for side in (pair.old, pair.new))
    if before is None or after is None:
        yield from _of_open_mode(pair, before, after)
        return
    if before == after:
        message = say("Gradients are sent in {after} either way, as the training mode has it", after=after)
        yield pair.says(_KEY, effects=(Effect.NONE,), severity=Severity.NONE, message=message)
        return
    share = WIDTHS[after] / WIDTHS[before]
    bits = _BITS[after]
    if share == 2:
        cost = say(": twice the bytes")
    elif share == 0.5:
        cost = say(": half the bytes, and sums that are rounded to {bits} significant bits", bits=bits)
    else:
        cost = say(", with sums of {bits} significant bits", bits=bits) if share <= 1 else say(", with sums of")
    yield pair.says(
        _KEY,
        effects=_ALL,
        severity=Severity.WARNING,
        message=say(
            "Gradients are sent in {after} instead of {before}{cost}",
            after=after,
            before=before,
            cost=cost,
        ),
        brief=say("gradients sent in {after}", after=after),
    )


def _of_open_mode(pair: Pair, before: str | None, after: str | None) -> Iterator[Explained]:
    """Yield what a stated format does beside a training mode that the consumer decides."""
    if (before is None) is (after is None) or not all(mode(side.context) is None for side in (pair.old, pair.new)):
        return
    stated = say("Gradients are sent in {what}, whatever the training mode", what=after or before)
    rest = say("in the format of the training mode")
    yield pair.says(
        _KEY,
        effects=_ALL,
        severity=Severity.WARNING,
        message=say("{stated}; previously {rest}", stated=stated, rest=rest)
        if after
        else say("Gradients are sent {rest}; previously in {before}, whatever the mode", rest=rest, before=before),
        advice="" if (after or before) != "fp32" else say("fp32 is twice the bytes of fp16 and bf16"),
        brief=say("gradients sent in {after}", after=after)
        if after
        else say("gradients sent in the format of the mode"),
    )


def _of_sequences(pair: Pair) -> Iterator[Explained]:
    before, after = (_sequence_format(side) for side in (pair.old, pair.new))
    if before is None or after is None or before == after:
        return
    meshed = all(_has_mesh(side) for side in (pair.old, pair.new))
    yield pair.says(
        _SEQUENCE,
        effects=_ALL,
        severity=Severity.WARNING,
        message=say("Gradients are sent in {after} instead of {before}", after=after, before=before)
        if meshed
        else say(
            "With the sequence parallelism of an `mpu` gradients are sent in {after} instead of {before}; without it "
            "nothing changes",
            after=after,
            before=before,
        ),
        brief=say("gradients of sequences sent in {after}", after=after),
    )


def _idle(pair: Pair, path: str) -> str:
    """Return why a key does nothing on either side; "" where it does."""
    sides = (pair.old, pair.new)
    if path == _KEY and all(_has_mesh(side) for side in sides):
        return say(
            "Does nothing: with the mesh for sequence parallelism `{sequence}` takes its place", sequence=_SEQUENCE
        )
    if all(buckets_by_parameter(side.context) is not False and side.context.stage in _ZERO for side in sides) and all(
        side.is_on(AUTOCAST) for side in sides
    ):
        return say("Does nothing: with `torch_autocast` ZeRO sends each gradient in a format of its own")
    stage = pair.new.context.stage
    if path == _SEQUENCE and all(side.context.stage in {1, 2} and scatters(side.context) for side in sides):
        return say(
            "Does nothing: under sequence parallelism the reduce-scatter of ZeRO {stage} sends fp32", stage=stage
        )
    return ""


def _has_mesh(side: Side) -> bool:
    sequence = degree(side.context, SEQUENCE)
    return sequence is not None and sequence > 1 and degree(side.context, DATA) is not None


def _sequence_format(side: Side) -> str | None:
    value = side.value(_SEQUENCE)
    return dtype(value) if value is not None else mode(side.context)


_ALL = (Effect.NUMERICS, Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED)
_ZERO = frozenset({1, 2, 3})
_BITS = {"fp16": 11, "bf16": 8, "fp32": 24}
