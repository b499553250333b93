"""Hints behind values: what they come to in bytes, that they do nothing, what "auto" becomes."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Array, Node, Object, Scalar
from dsmigrate.editing.derived import Unmet, bytes_text, count_text, fate, in_force, size, unmet
from dsmigrate.editing.derived.force import OPTIMIZER_DEVICE, PARAM_DEVICE, STAGE, ZERO
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.editing.inlay.model import Hint, Kind, behind, named
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Key, Status
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry

_SMALL = 10_000
"""A number below it reads as it is."""
_POWER = "fp16.initial_scale_power"
_MARKED = frozenset({STAGE, OPTIMIZER_DEVICE, PARAM_DEVICE})
"""Conditions whose failure is marked; a section that is switched off by name says so itself."""


def hints(view: View, start: int, end: int) -> Iterator[Hint]:
    """Yield the hints of the members that touch a range."""
    inert_until = 0
    for entry in view.context.entries:
        member = entry.member
        if (
            member.start < inert_until
            or behind(view.text, member.end) < start
            or end < member.start
            or entry.node is None
        ):
            continue
        condition = _inert(view.context, entry)
        if condition is not None:
            inert_until = member.end
            if _means_something(view.context, entry):
                yield Hint(_place(view, entry.node), _mark(condition), _why(condition), Kind.INERT)
        elif isinstance(entry.node, Scalar):
            yield from _value(view, entry, entry.node)


def _value(view: View, entry: Entry, node: Scalar) -> Iterator[Hint]:
    if node.value() == "auto":
        found = fate(view.context, entry.path, entry.key)
        if found is not None and found.short:
            yield Hint(behind(view.text, node.end), named(f"= {found.short}"), found.sentence, Kind.AUTO)
        return
    key = entry.key
    here = key is not None and key.status in {Status.PRESENT, Status.DEPRECATED}
    if key is not None and here and unmet(view.context, key, entry.path) is None:
        text, tooltip = _size(view.context, key)
        if text:
            yield Hint(behind(view.text, node.end), text, tooltip, Kind.SIZE)


def _size(context: Context, key: Key) -> tuple[str, str]:
    """Return a number in short with its tooltip, "" where it reads well as it is."""
    if key.path == _POWER:
        power = whole(context.number(key.path))
        return (f"= {2**power}", say("The first loss scale.")) if power is not None and 1 < power <= 64 else ("", "")
    if key.unit not in {"elements", "bytes"}:
        return "", ""
    count = whole(in_force(context, key.path))
    if count is None or count < _SMALL:
        return "", ""
    if key.unit == "bytes":
        return bytes_text(count), say("{count} bytes", count=count)
    found = size(context, key, count)
    if found is not None:
        return f"{found.short}, {found.count}", found.sentence
    return say("{count} elements", count=count_text(count)), say("{count} elements", count=count)


def _inert(context: Context, entry: Entry) -> Unmet | None:
    """Return the condition on ZeRO that keeps a key of its section from doing anything; nothing at stage 0."""
    key = entry.key
    if key is None or not key.path.startswith(f"{ZERO}.") or not context.stage:
        return None
    condition = unmet(context, key, entry.path)
    marked = condition is not None and condition.path in _MARKED and not condition.alternatives
    return condition if marked else None


def _means_something(context: Context, entry: Entry) -> bool:
    """Return whether a value asks for something, so that its being inert is worth a mark."""
    if isinstance(entry.node, Array):
        return len(entry.node) > 0
    if isinstance(entry.node, Object):
        device = context.known.key((*entry.path, "device"))
        return len(entry.node) > 0 and (device is None or context.value(device.path) not in {"none", None})
    return entry.node is not None and entry.node.value() not in (None, False, "none", 0, "")


def _place(view: View, node: Node) -> int:
    return node.inner_start if isinstance(node, (Object, Array)) else behind(view.text, node.end)


def _mark(condition: Unmet) -> str:
    if condition.path == STAGE:
        return say("no effect at ZeRO stage {held}", held=condition.held)
    return say("no effect: {split} is on {held}", split=condition.path.split(".")[-2], held=condition.held)


def _why(condition: Unmet) -> str:
    wanted = say(" or ").join(str(value) for value in condition.wanted)
    if condition.path == STAGE:
        return say("It works at stage {wanted} only.", wanted=wanted)
    return say("It works with `{condition_path}` {wanted} only.", condition_path=condition.path, wanted=wanted)
