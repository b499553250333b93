"""The number formats of the file, and the loss scale."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.derived import precision
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.editing.hover.here.subject import Subject
from dsmigrate.knowledge.wording import json_text
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
        yield f"The loss scale starts at {power}."


def _formats(context: Context) -> Iterator[str]:
    found = precision(context)
    if found.weights is None:
        yield f"{context.consumer.title} decides about fp16 and bf16."
        return
    told = [f"weights in {found.weights}"]
    if found.autocast:
        told.append(f"computing in {found.autocast} under autocast")
    if found.sums is not None and found.communication is not None:
        told.append(f"gradients summed in {found.sums} and sent in {found.communication}")
    text = ", ".join(told)
    yield f"{text[0].upper()}{text[1:]}."


def _scale(context: Context) -> Iterator[str]:
    scale = context.number(DYNAMIC)
    if scale == 0:
        power = _power(context)
        yield f"Dynamic: it starts at {power}." if power else "Dynamic."
    elif scale is not None and 0 < scale < float("inf"):
        yield f"Static: {json_text(scale)} for the whole run."


def _power(context: Context) -> str:
    power = whole(context.number(_POWER))
    return "" if power is None or power > _LARGEST_POWER else f"2^{power} = {2**power}"
