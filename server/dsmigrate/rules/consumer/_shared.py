"""Where a config says "auto", and whether the key does anything there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dsmigrate.document import Object, Path, Scalar
from dsmigrate.knowledge import MISSING, AutoEffect, Consumer, Key, Status
from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN, Context, Entry
from dsmigrate.rules.optimizer import _shared as optimizer
from dsmigrate.rules.scheduler import _shared as scheduler

AUTO = "auto"
SWITCHES = ("stage", "enabled", "device")
"""Keys that turn a feature on: their default is off, which is hardly what "auto" means there."""


def autos(context: Context) -> Iterator[Entry]:
    """Yield the entries whose value is "auto" and which this release reads."""
    for entry in context.entries:
        if isinstance(entry.node, Scalar) and entry.node.value() == AUTO and not is_gone(context, entry.path):
            yield entry


def auto_paths(context: Context) -> Iterator[Path]:
    """Yield the path of every "auto" that Accelerate finds: below objects alone, under unknown keys too.

    It spells a path with dots and takes it apart again, and so finds nothing under a name that holds one.
    """
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
    return say(" and ").join(say("the {name}", name=name) if name.endswith("Trainer") else name for name in names)


def is_section(context: Context, key: Key) -> bool:
    """Return whether a key, or the one it is another name of, holds keys of its own."""
    meant = context.known.key(key.alias_of) if key.alias_of else key
    return meant is not None and meant.is_section


def is_effective(context: Context, key: Key, path: Path) -> bool | None:
    """Return whether the key at a path does anything; None when that depends on what is not known."""
    if key.dead:
        return False
    always = _holds(context, key.effective_when, path)
    one_of = [_holds(context, conditions, path) for conditions in key.effective_when_any] or [True]
    if always is False or not any(met is not False for met in one_of):
        return False
    return True if always and True in one_of else None


def _holds(context: Context, conditions: Mapping[str, Sequence[object]], path: Path) -> bool | None:
    """Return whether all conditions of a key at a path hold; without values, its path must be there."""
    met: bool | None = True
    for condition, wanted in conditions.items():
        own = _own(condition, path)
        value = context.value(own)
        if value is UNKNOWN:
            met = None
        elif value not in wanted if wanted else context.raw(own) is MISSING:
            return False
    return met


def parameter_fails(context: Context, entry: Entry) -> bool | None:
    """Return whether "auto" stops the optimizer or the schedule it is a parameter of; None for what neither takes."""
    if entry.path[0] == "optimizer":
        built = optimizer.optimizer(context)
        parameter = None if built is None else built.parameters.get(entry.name)
        if built is None or parameter is None or optimizer.refusal(context, built, parameter, AUTO) is not None:
            return None
        return optimizer.fails_on_text(context, built, parameter, AUTO)
    built = scheduler.schedule(context)
    parameter = None if built is None else built.parameters.get(entry.name)
    if built is None or parameter is None:
        return None
    return bool(scheduler.fails_on_text(context, built, parameter, AUTO))


def _own(condition: str, path: Path) -> str:
    """Return a condition's path with the free names of the path it is asked for."""
    parts = condition.split(".")
    return ".".join(str(path[index]) if part == "*" and index < len(path) else part for index, part in enumerate(parts))


def _auto_paths(section: Object, path: Path) -> Iterator[Path]:
    waiting = [(iter(section), path)]  # and no recursion: half-typed text may be nested without end
    while waiting:
        members, around = waiting[-1]
        member = next(members, None)
        if member is None:
            waiting.pop()
            continue
        if member.name is None or "." in member.name:
            continue
        here = (*around, member.name)
        if isinstance(member.node, Object):
            waiting.append((iter(member.node), here))
        elif isinstance(member.node, Scalar) and member.node.value() == AUTO:
            yield here
