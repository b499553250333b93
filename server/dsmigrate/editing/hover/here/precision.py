"""The number formats of the file, and the loss scale."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.derived import precision
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.editing.hover.here.subject import Subject
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.precision._shared import ACCUMULATION, AUTOCAST, BF16, DYNAMIC, FP16

_FORMATS = frozenset({FP16, BF16, AUTOCAST, ACCUMULATION, "fp16", "bf16", "torch_autocast", "communication_data_type"})
_POWER = "fp16.initial_scale_power"
_LARGEST_POWER = 64


def lines(at: Subject) -> Iterator[str]:
    """Yield what weights, sums and messages are kept in, or where the loss scale starts."""
    context, path = at.context, at.path
    if path in _FORMATS:
        yield from _formats(context)
    elif path == DYNAMIC and context.is_on(FP16):
        yield from _scale(context)
    elif path == _POWER and (power := _power(context)):
        yield say("The loss scale starts at {power}.", power=power)


def _formats(context: Context) -> Iterator[str]:
    found = precision(context)
    if found.weights is None:
        yield say("{consumer} decides about fp16 and bf16.", consumer=context.consumer.title)
        return
    told = [say("weights in {weights}", weights=found.weights)]
    if found.autocast:
        told.append(say("computing in {autocast} under autocast", autocast=found.autocast))
    if found.sums is not None and found.communication is not None:
        told.append(
            say(
                "gradients summed in {sums} and sent in {communication}",
                sums=found.sums,
                communication=found.communication,
            )
        )
    text = say(", ").join(told)
    yield say("{text}.", text=f"{text[0].upper()}{text[1:]}")


def _scale(context: Context) -> Iterator[str]:
    scale = context.number(DYNAMIC)
    if scale == 0:
        power = _power(context)
        yield say("Dynamic: it starts at {power}.", power=power) if power else say("Dynamic.")
    elif scale is not None and 0 < scale < float("inf"):
        yield say("Static: {scale} for the whole run.", scale=json_text(scale))


def _power(context: Context) -> str:
    power = whole(context.number(_POWER))
    return "" if power is None or power > _LARGEST_POWER else f"2^{power} = {2**power}"
