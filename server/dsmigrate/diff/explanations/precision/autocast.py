"""The engine's own autocast region: on, off, its format, and what it sends."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair, shown
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.precision import precision
from dsmigrate.knowledge import MISSING
from dsmigrate.languages import say
from dsmigrate.rules.precision._shared import AUTOCAST

_DTYPE = "torch_autocast.dtype"
_MODULES = "torch_autocast.lower_precision_safe_modules"
_ALL = (Effect.NUMERICS, Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED)


@explanation(
    "DF304",
    "torch-autocast",
    summary="The forward pass begins or ends to run under `torch.autocast`, or runs in another format.",
    why=(
        "The engine opens the region around `engine.forward`, with weights in their own format, and on a GPU switches a"
        " region of the script off where the config has none. At ZeRO 1 to 3 the gradients of listed module classes are"
        " reduced in the format of the region, at ZeRO 3 their weights are gathered in it."
    ),
    source=(
        "deepspeed/runtime/torch_autocast.py:autocast_if_enabled",
        "deepspeed/runtime/torch_autocast.py:init_autocast_params",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "torch_autocast": {"enabled": true, "dtype": "bfloat16"}}',
            "The forward pass runs under `torch.autocast` in bf16 now, with the weights as they are",
            paths=(AUTOCAST, _DTYPE),
            effects=_ALL,
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "torch_autocast": {"enabled": true, "dtype":'
            ' "bf16"}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            "The forward pass runs without autocast, previously in bf16; on a GPU a region of the script around"
            " `engine(...)` is switched off as well",
        ),
        Example(
            '{"train_batch_size": 8, "torch_autocast": {"enabled": true, "dtype": "bf16"}}',
            '{"train_batch_size": 8, "torch_autocast": {"enabled": true, "dtype": "fp16"}}',
            "Autocast computes in fp16 instead of bf16, with a gradient scaler that no checkpoint keeps",
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}, "torch_autocast": {"enabled": true, "dtype":'
            ' "bf16"}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}, "torch_autocast": {"enabled": true, "dtype":'
            ' "bf16", "lower_precision_safe_modules": []}}',
            "No module is sent in the format of autocast: gradients are sent in their own format",
            paths=(_MODULES,),
            effects=(Effect.NUMERICS, Effect.COMMUNICATION),
        ),
        Example(
            '{"train_batch_size": 8, "torch_autocast": {"enabled": true, "dtype": "bf16"}}',
            '{"train_batch_size": 8, "torch_autocast": {"enabled": true, "dtype": "bfloat16"}}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what becomes of the region."""
    changed = [path for path in (AUTOCAST, _DTYPE, _MODULES) if pair.change(path) is not None]
    before, after = pair.old.is_on(AUTOCAST), pair.new.is_on(AUTOCAST)
    if not changed or before is None or after is None:
        return
    if before is not after:
        kind = _format(pair.new if after else pair.old)
        yield pair.says(
            *changed,
            effects=_ALL,
            severity=Severity.WARNING,
            message=say(
                "The forward pass runs under `torch.autocast` in {kind} now, with the weights as they are{sent}",
                kind=kind,
                sent=_sent(pair),
            )
            if after
            else say(
                "The forward pass runs without autocast, previously in {kind}; on a GPU a region of the script "
                "around `engine(...)` is switched off as well",
                kind=kind,
            ),
            brief=say("autocast in {kind}", kind=kind) if after else say("no autocast"),
        )
    elif after:
        yield from _otherwise(pair)


def _otherwise(pair: Pair) -> Iterator[Explained]:
    if pair.change(_DTYPE) is not None:
        old, new = _format(pair.old), _format(pair.new)
        scaler = say(", with a gradient scaler that no checkpoint keeps") if new == "fp16" else ""
        yield pair.says(
            _DTYPE,
            effects=_ALL,
            severity=Severity.WARNING,
            message=say("Autocast computes in {new} instead of {old}{scaler}", new=new, old=old, scaler=scaler),
            brief=say("autocast in {new}", new=new),
        )
    change = pair.change(_MODULES)
    if change is not None:
        if change.new_meant == []:
            message = say("No module is sent in the format of autocast: gradients are sent in their own format")
        else:
            message = say(
                "Gradients of {classes} are sent in the format of autocast, previously of {classes_2}; all others "
                "are sent in their own",
                classes=_classes(change.new_meant),
                classes_2=_classes(change.old_meant),
            )
        yield pair.says(
            _MODULES,
            effects=(Effect.NUMERICS, Effect.COMMUNICATION),
            severity=Severity.WARNING,
            message=message,
            brief=say("other modules sent in 16 bit"),
        )


def _format(side: Side) -> str:
    return precision(side.context).autocast or say("the default format of torch")


def _classes(value: object) -> str:
    if value is None or value is MISSING:
        return say("linear and convolution layers")
    return say("no module") if value == [] else shown(value)


def _sent(pair: Pair) -> str:
    if pair.new.context.stage in {1, 2, 3} and pair.new.value(_MODULES) != []:
        modules = _classes(pair.new.value(_MODULES))
        return say(
            "; ZeRO {stage} reduces the gradients of {modules} in that format",
            stage=pair.new.context.stage,
            modules=modules,
        )
    return ""
