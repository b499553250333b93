"""Buffers of the model, and the format that parameters are said to have."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair, shown
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.knowledge import MISSING
from dsmigrate.languages import say

_BUFFERS = "data_types.buffer_dtype"
_KEPT = "data_types.keep_in_fp32_modules"
_PARAMETERS = "data_types.param_dtype"
_BF16 = '{"train_batch_size": 8, "bf16": {"enabled": true}'


@explanation(
    "DF311",
    "buffers",
    summary="Buffers of the model are cast to another format, or others of them stay fp32.",
    why=(
        "In fp16 and bf16 training parameters are cast and buffers keep the format they are loaded in: rotary"
        " frequencies, running statistics. `data_types.buffer_dtype` casts them all, except those that"
        " `keep_in_fp32_modules` protects. `data_types.param_dtype` casts nothing; the engine only compares it with"
        " the mode."
    ),
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine._cast_module_mixed_precision",
        "deepspeed/runtime/engine.py:DeepSpeedEngine._assert_valid_mixed_precision_config",
        "deepspeed/runtime/keep_in_fp32.py:keep_in_fp32_pattern",
    ),
    examples=(
        Example(
            _BF16 + "}",
            _BF16 + ', "data_types": {"buffer_dtype": "bf16"}}',
            "Buffers of the model are cast to bf16; previously they kept the format they are loaded in",
            paths=(_BUFFERS,),
            effects=(Effect.NUMERICS, Effect.MEMORY),
            severity=Severity.WARNING,
        ),
        Example(
            _BF16 + ', "data_types": {"buffer_dtype": "bf16"}}',
            _BF16 + "}",
            "Buffers of the model keep the format they are loaded in; previously they were cast to bf16",
        ),
        Example(
            _BF16 + "}",
            _BF16 + ', "data_types": {"keep_in_fp32_modules": []}}',
            "No buffer is kept in fp32 for its name; previously those on the lists of the model class were",
            paths=(_KEPT,),
        ),
        Example(
            _BF16 + "}",
            _BF16 + ', "data_types": {"param_dtype": "bf16"}}',
            "It casts nothing: DeepSpeed compares it with the training mode when the engine starts, and stops if they"
            " differ",
            paths=(_PARAMETERS,),
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "data_types": {"buffer_dtype": "bf16"}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what becomes of buffers."""
    change = pair.change(_BUFFERS)
    if change is not None and all(pair.lives(_BUFFERS)):
        new, old = _cast(change.new_meant), _cast(change.old_meant)
        yield pair.says(
            _BUFFERS,
            effects=(Effect.NUMERICS, Effect.MEMORY),
            severity=Severity.WARNING,
            message=say("Buffers of the model {are}; previously they {were}", are=_are(new), were=_were(old)),
            brief=say("buffers in {new}", new=new) if new else say("buffers as they are loaded"),
        )
    change = pair.change(_KEPT)
    if change is not None:
        yield pair.says(
            _KEPT,
            effects=(Effect.NUMERICS, Effect.MEMORY),
            severity=Severity.WARNING,
            message=say(
                "{kept} kept in fp32 for {en_their} name; previously {those}",
                kept=_kept(change.new_meant),
                en_their="its" if change.new_meant == [] else "their",
                those=_those(change.old_meant),
            ),
            brief=say("other buffers kept in fp32"),
        )
    if pair.change(_PARAMETERS) is not None:
        yield pair.says(
            _PARAMETERS,
            effects=(Effect.NONE,),
            severity=Severity.NONE,
            message=say(
                "It casts nothing: DeepSpeed compares it with the training mode when the engine starts, and "
                "stops if they differ"
            ),
        )


def _cast(value: object) -> str:
    return value if isinstance(value, str) else ""


def _are(kind: str) -> str:
    return say("are cast to {kind}", kind=kind) if kind else say("keep the format they are loaded in")


def _were(kind: str) -> str:
    return say("were cast to {kind}", kind=kind) if kind else say("kept the format they are loaded in")


def _kept(value: object) -> str:
    if value in (MISSING, "auto"):
        return say("Buffers on the lists of the model class are")
    return say("No buffer is") if value == [] else say("Buffers that fit {value} are", value=shown(value))


def _those(value: object) -> str:
    if value in (MISSING, "auto"):
        return say("those on the lists of the model class were")
    return say("none was") if value == [] else say("those that fit {value} were", value=shown(value))
