"""The symbols of a config: what an outline shows, and what a jump list offers."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.document import Array, Member, Node, Object, Scalar
from dsmigrate.editing.view import View
from dsmigrate.languages import say

DEEPEST = 64
"""Levels that are shown; real configs have up to eight."""
_LONGEST = 60


class SymbolKind(enum.Enum):
    """What a value is."""

    OBJECT = "object"
    ARRAY = "array"
    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A key with its value: offsets of the whole member and of its key, and what is inside."""

    name: str
    detail: str
    kind: SymbolKind
    start: int
    end: int
    key_start: int
    key_end: int
    deprecated: bool
    children: tuple[Symbol, ...]


def symbols(view: View) -> tuple[Symbol, ...]:
    """Return the symbols of a config; members without a key or a value are left out."""
    root = view.document.root
    return tuple(_symbols(view, root, (), 0)) if isinstance(root, Object) else ()


def _symbols(view: View, section: Object, path: tuple[str | int, ...], depth: int) -> Iterator[Symbol]:
    if depth >= DEEPEST:
        return
    for member in section:
        node, key = member.node, member.key
        if node is None or key is None:
            continue
        here = (*path, key.name)
        known = view.known.key(here)
        yield Symbol(
            name=key.name or '""',
            detail=_detail(node),
            kind=_kind(node),
            start=member.start,
            end=member.end,
            key_start=key.start,
            key_end=key.end,
            deprecated=known is not None and known.status.value == "deprecated",
            children=tuple(_inside(view, node, here, depth + 1)),
        )


def _inside(view: View, node: Node, path: tuple[str | int, ...], depth: int) -> Iterator[Symbol]:
    if isinstance(node, Object):
        yield from _symbols(view, node, path, depth)
    elif isinstance(node, Array):
        for index, item in enumerate(node):
            if isinstance(item, Object) and depth < DEEPEST:
                inner = tuple(_symbols(view, item, (*path, index), depth + 1))
                ends = item.start, item.end
                yield Symbol(
                    f"[{index}]", _detail(item), SymbolKind.OBJECT, *ends, *ends, deprecated=False, children=inner
                )


def _detail(node: Node) -> str:
    """Return the value in short: itself, or the members that say most about a section."""
    if isinstance(node, Scalar):
        text = node.raw
    elif isinstance(node, Array):
        text = " ".join(node.raw.split()) if len(node) and all(isinstance(item, Scalar) for item in node) else ""
    else:
        said = (_named(node.get(name)) for name in ("enabled", "type", "stage", "device"))
        text = ", ".join(part for part in said if part)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _named(member: Member | None) -> str:
    if member is None or not isinstance(member.node, Scalar):
        return ""
    value = member.node.value()
    if member.name == "enabled":
        return {True: "on", False: "off"}.get(value, member.node.raw) if isinstance(value, bool) else member.node.raw
    return say("stage {raw}", raw=member.node.raw) if member.name == "stage" else str(value)


def _kind(node: Node) -> SymbolKind:
    if isinstance(node, Object):
        return SymbolKind.OBJECT
    if isinstance(node, Array):
        return SymbolKind.ARRAY
    value = node.value()
    if isinstance(value, bool):
        return SymbolKind.BOOLEAN
    if isinstance(value, int | float):
        return SymbolKind.NUMBER
    return SymbolKind.NULL if value is None else SymbolKind.STRING
