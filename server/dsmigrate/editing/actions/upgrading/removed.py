"""Keys that the new release rejects: taken out, and named where they did something."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import render_path
from dsmigrate.editing.actions.draft import Step, remove
from dsmigrate.editing.actions.upgrading.crossing import Crossing, Left
from dsmigrate.knowledge import MISSING, Key, Status
from dsmigrate.rules.context import Entry

_BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu")


def removed(crossing: Crossing) -> Iterator[Step | Left]:
    """Yield the removal of each key that is not inside one that goes."""
    for entry, key in crossing.entries():
        around = crossing.context.known.key(entry.path[:-1]) if len(entry.path) > 1 else None
        if key.status is not Status.REJECTED or (around is not None and around.status is Status.REJECTED):
            continue
        name = f"`{render_path(entry.path)}`"
        was_on = _was_on(crossing, entry, key)
        if key.path == "elasticity" and was_on and not any(map(crossing.context.has, _BATCH)):
            yield Left(f"{name} computed the batch size; write `{_BATCH[0]}` or `{_BATCH[1]}` in its place.")
            continue
        yield remove(entry.path, f"{name} goes: DeepSpeed {key.until} and later reject a config that holds it.")
        if was_on:
            instead = " or ".join(f"`{path}`" for path in key.successors)
            yield Left(
                f"{name} was on, and is gone{f'; {instead} may do instead' if instead else ' without a replacement'}:"
                f" {key.summary[:1].lower()}{key.summary[1:]}"
            )


def _was_on(crossing: Crossing, entry: Entry, key: Key) -> bool:
    """Return whether the earlier release did something for a key."""
    if entry.node is None or not crossing.was_read(key):
        return False
    value = entry.node.value()
    before = crossing.earlier.key(key.path)
    default = before.default if before is not None else MISSING
    return value != default and _is_on(value)


def _is_on(value: object) -> bool:
    """Return whether a value switches something on: by its own switch, else by any inside, else by being anything."""
    if not isinstance(value, dict) or "enabled" in value:
        return bool(value["enabled"] if isinstance(value, dict) else value)
    switches: list[bool] = []
    waiting: list[dict[str, object]] = [value]
    while waiting:
        section = waiting.pop()
        switches += [bool(section["enabled"])] if "enabled" in section else []
        waiting += [inner for inner in section.values() if isinstance(inner, dict)]
    return any(switches) if switches else bool(value)
