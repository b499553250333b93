"""Keys that the new release rejects: taken out, and named where they did something."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import render_path
from dsmigrate.editing.actions.draft import Step, remove
from dsmigrate.editing.actions.upgrading.crossing import Crossing, Left
from dsmigrate.knowledge import MISSING, Key, Status
from dsmigrate.languages import say
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
            yield Left(
                say(
                    "{name} computed the batch size; write `{batch}` or `{batch_2}` in its place.",
                    name=name,
                    batch=_BATCH[0],
                    batch_2=_BATCH[1],
                )
            )
            continue
        yield remove(
            entry.path,
            say("{name} goes: DeepSpeed {until} and later reject a config that holds it.", name=name, until=key.until),
        )
        if was_on:
            instead = say(" or ").join(f"`{path}`" for path in key.successors)
            yield Left(
                say(
                    "{name} was on, and is gone{what}: {lower}{summary}",
                    name=name,
                    what=say("; {instead} may do instead", instead=instead)
                    if instead
                    else say(" without a replacement"),
                    lower=key.summary[:1].lower(),
                    summary=key.summary[1:],
                )
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
