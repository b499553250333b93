"""Where a config says "auto", and whether the key does anything there."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object, Path, Scalar
from dsmigrate.knowledge import AutoEffect, Consumer, Key, Status
from dsmigrate.rules.context import UNKNOWN, Context, Entry

AUTO = "auto"
SWITCHES = ("stage", "enabled", "device")
"""Keys that turn a feature on: their default is off, which is hardly what "auto" means there."""


def autos(context: Context) -> Iterator[Entry]:
    """Yield the entries whose value is "auto" and which this release reads."""
    for entry in context.entries:
        if isinstance(entry.node, Scalar) and entry.node.value() == AUTO and not is_gone(context, entry.path):
            yield entry


def auto_paths(context: Context) -> Iterator[Path]:
    """Yield the path of every "auto" below objects alone, under unknown keys too: all that Accelerate walks over."""
    if context.root is not None:
        yield from _auto_paths(context.root, ())


def is_gone(context: Context, path: Path) -> bool:
    """Return whether the release refuses the key at a path, which is told elsewhere."""
    key = context.known.key(path[:1]), context.known.key(path)
    return any(found is not None and found.status is Status.REJECTED for found in key)


def fillers(context: Context, path: Path | str) -> str:
    """Return the consumers that fill "auto" at a path, in words; "" when none does."""
    names = [
        consumer.title
        for consumer in (Consumer.TRANSFORMERS, Consumer.ACCELERATE)
        if (auto := context.known.auto(path, consumer)) is not None and auto.effect is AutoEffect.FILLED
    ]
    return " and ".join(f"the {name}" if name.endswith("Trainer") else name for name in names)


def is_section(context: Context, key: Key) -> bool:
    """Return whether a key, or the one it is another name of, holds keys of its own."""
    meant = context.known.key(key.alias_of) if key.alias_of else key
    return meant is not None and meant.is_section


def is_effective(context: Context, key: Key, path: Path) -> bool | None:
    """Return whether the key at a path does anything; None when that depends on what is not known."""
    if key.dead:
        return False
    met: bool | None = True
    for condition, wanted in key.effective_when.items():
        value = context.value(_own(condition, path))
        if value is UNKNOWN:
            met = None
        elif value not in wanted:
            return False
    return met


def _own(condition: str, path: Path) -> str:
    """Return a condition's path with the free names of the path it is asked for."""
    parts = condition.split(".")
    return ".".join(str(path[index]) if part == "*" and index < len(path) else part for index, part in enumerate(parts))


def _auto_paths(section: Object, path: Path) -> Iterator[Path]:
    for member in section:
        if member.name is None:
            continue
        here = (*path, member.name)
        if isinstance(member.node, Object):
            yield from _auto_paths(member.node, here)
        elif isinstance(member.node, Scalar) and member.node.value() == AUTO:
            yield here
