"""Keys that the earlier release did not know yet, and passed over, and that begin to act."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import render_path
from dsmigrate.editing.actions.defaults import repeats
from dsmigrate.editing.actions.draft import Step
from dsmigrate.editing.actions.upgrading.crossing import HERE, Crossing, Left
from dsmigrate.knowledge import Status
from dsmigrate.languages import say


def newly_read(crossing: Crossing) -> Iterator[Step | Left]:
    """Yield a sentence for each such key that says something else than its default."""
    for entry, key in crossing.entries():
        before = crossing.earlier.key(key.path)
        if key.status not in HERE or before is None or before.status is not Status.NOT_YET or entry.node is None:
            continue
        if key.is_section or repeats(entry.node.value(), key):
            continue
        name = f"`{render_path(entry.path)}`"
        earlier, now = crossing.earlier.version, crossing.context.known.version
        yield Left(
            say(
                "{name} did nothing in {earlier}, which did not know it, and acts in {now}: make sure it is meant.",
                name=name,
                earlier=earlier,
                now=now,
            )
        )
