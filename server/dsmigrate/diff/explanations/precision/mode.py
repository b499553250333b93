"""The training mode: fp32, fp16 or bf16 weights."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.precision._scale import first_scale
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.precision import WIDTHS, precision
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import mark, say
from dsmigrate.rules.precision._shared import BF16, FP16, mode

_SCALING = (
    "loss_scale",
    "initial_scale_power",
    "loss_scale_window",
    "hysteresis",
    "consecutive_hysteresis",
    "min_loss_scale",
)


@explanation(
    "DF302",
    "training-mode",
    summary="Weights, activations and gradients get another number format: fp32, fp16 or bf16.",
    why=(
        "fp16 has 11 significant bits and a small range, so that the loss is scaled and steps with overflow are"
        " skipped; bf16 has the range of fp32 and 8 bits. Both keep fp32 master weights in the optimizer. Gradients"
        " are summed and sent in the format of the weights unless the config says otherwise."
        " ZeRO writes the optimizer files of bf16 under names of their own and finds no others, so that a checkpoint"
        " loads between fp32 and fp16 alone; there it brings a loss scaler along, that of fp32 with a fixed scale of 1."
    ),
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine._configure_distributed_model",
        "deepspeed/runtime/engine.py:DeepSpeedEngine.get_data_types",
        "deepspeed/runtime/fp16/loss_scaler.py:CreateLossScaler",
        "deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer._load_global_state",
        "deepspeed/runtime/engine.py:DeepSpeedEngine._get_all_zero_checkpoints",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "bf16": {"enabled": true}}',
            "Weights, activations and gradients are bf16 instead of fp32, with fp32 master weights in the optimizer:"
            " half the bytes to hold and to send, 8 significant bits instead of 24",
            paths=(BF16,),
            effects=(Effect.NUMERICS, Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED, Effect.CHECKPOINT),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "fp16": {"enabled": true, "initial_scale_power": 12}, "zero_optimization":'
            ' {"stage": 2}}',
            '{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}',
            "Weights, activations and gradients are bf16 instead of fp16: the range of fp32, so no loss scale and no"
            " steps skipped for it, but 8 significant bits instead of 11",
            paths=(BF16, FP16, "fp16.initial_scale_power"),
            severity=Severity.BREAKING,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            '{"train_batch_size": 8, "fp16": {"enabled": true, "initial_scale_power": 12}, "zero_optimization":'
            ' {"stage": 2}}',
            "Weights, activations and gradients are fp16 instead of fp32, with fp32 master weights in the optimizer:"
            " half the bytes to hold and to send, 11 significant bits instead of 24, and a loss scale that starts at"
            " 4096",
            paths=(FP16, "fp16.initial_scale_power"),
        ),
        Example(
            '{"train_batch_size": 8, "bf16": {"enabled": true}}',
            '{"train_batch_size": 8}',
            "Weights, activations and gradients are fp32 instead of bf16: twice the bytes to hold and to send",
        ),
        Example(
            '{"train_batch_size": 8, "communication_data_type": "fp32"}',
            '{"train_batch_size": 8, "communication_data_type": "fp32", "bf16": {"enabled": true}}',
            "Weights, activations and gradients are bf16 instead of fp32, with fp32 master weights in the optimizer:"
            " half the bytes to hold, 8 significant bits",
        ),
        Example(
            '{"train_batch_size": 8, "fp16": {"enabled": true}, "bf16": {"enabled": "auto"}}',
            '{"train_batch_size": 8, "fp16": {"enabled": false}, "bf16": {"enabled": true}}',
            "Weights, activations and gradients are bf16 instead of fp16",
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_batch_size": 8, "bfloat16": {"enabled": true}}',
            '{"train_batch_size": 8, "bf16": {"enabled": true}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what becomes of the weights where the mode is another one."""
    paths = [path for path in (BF16, FP16) if pair.change(path) is not None]
    before, after = _mode(pair.old), _mode(pair.new)
    if not paths or before is None or after is None or before == after:
        return
    lost = _loads_nothing(pair, before, after)
    scaling = [f"fp16.{name}" for name in _SCALING if "fp16" in (before, after)]
    yield pair.says(
        *paths,
        *(path for path in scaling if pair.change(path) is not None),
        effects=(Effect.NUMERICS, Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED, Effect.CHECKPOINT),
        severity=Severity.BREAKING if lost else Severity.WARNING,
        message=say(
            "Weights, activations and gradients are {after} instead of {before}{what}",
            after=after,
            before=before,
            what=_what(pair, before, after),
        )
        + (say(_LOST) if lost else ""),
        advice=_advice(pair, before, after),
        brief=f"{before} → {after}",
    )


_BITS = {"fp16": 11, "bf16": 8, "fp32": 24}
_RANGE = mark("the range of fp32, so no loss scale and no steps skipped for it")


def _mode(side: Side) -> str | None:
    """Return the training mode; one that is on leaves nothing open, since both together are refused."""
    return next((name for name, path in (("fp16", FP16), ("bf16", BF16)) if side.is_on(path)), mode(side.context))


def _what(pair: Pair, before: str, after: str) -> str:
    bits = say("{bits} significant bits instead of {bits_2}", bits=_BITS[after], bits_2=_BITS[before])
    sent = [precision(side.context).communication for side in (pair.old, pair.new)]
    hold = say("hold and to send") if sent == [before, after] else say("hold")
    if after == "fp32":
        return say(": twice the bytes to {hold}, {bits}", hold=hold, bits=bits) + (
            say(", and no loss scale") if before == "fp16" else ""
        )
    scale = say("a loss scale {first_scale}", first_scale=first_scale(pair.new)) if after == "fp16" else ""
    if WIDTHS[before] == WIDTHS[after]:
        return (
            say(": {scale}, {bits}", scale=scale, bits=bits)
            if scale
            else say(": {range}, but {bits}", range=say(_RANGE), bits=bits)
        )
    kept = say(
        ", with {masters} master weights in the optimizer: half the bytes to {hold}, ",
        masters=precision(pair.new.context).masters,
        hold=hold,
    )
    return f"{kept}{bits}" + (say(", and {scale}", scale=scale) if scale else "")


def _advice(pair: Pair, before: str, after: str) -> str:
    if _loads_nothing(pair, before, after):
        return say("Resume from the weights of an old checkpoint alone, with `load_optimizer_states=False`")
    if after == "fp16" and pair.new.context.stage in _ZERO:
        return say(
            "A checkpoint of fp32 brings its scaler along, a fixed scale of 1: load it without the optimizer states"
        )
    if before == "fp32":
        return say("Inputs are not converted: pass {after} tensors, or let the model cast", after=after)
    return ""


def _loads_nothing(pair: Pair, before: str, after: str) -> bool:
    """Return whether ZeRO looks for optimizer files under names that the other mode does not give them."""
    stages = {side.context.stage for side in (pair.old, pair.new)}
    return stages <= _ZERO and "bf16" in (before, after)


_ZERO = frozenset({1, 2, 3})
_LOST = mark("; checkpoints of the one do not load in the other, since ZeRO names the files of bf16 otherwise")
