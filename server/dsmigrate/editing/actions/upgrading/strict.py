"""Keys that nobody ever read, in sections that have begun to reject what they do not know."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import render_path
from dsmigrate.editing.actions.draft import Step, remove
from dsmigrate.editing.actions.upgrading.crossing import HERE, Crossing, Left
from dsmigrate.languages import say
from dsmigrate.rules.keys._shared import is_comment


def strict(crossing: Crossing) -> Iterator[Step | Left]:
    """Yield the removal of each key that the earlier release swallowed and the new one rejects; comments are left."""
    known = crossing.context.known
    for entry in crossing.context.entries:
        section = known.key(entry.path[:-1]) if len(entry.path) > 1 else None
        if section is None or not section.rejects_unknown_keys or entry.node is None or is_comment(entry.name):
            continue
        if crossing.earlier.rejects_unknown_keys(section.path) or (entry.key and entry.key.status in HERE):
            continue
        before = crossing.earlier.key(entry.path)
        if before is not None and before.status in HERE:
            continue  # it was read, and is told as removed or renamed
        here, where = f"`{render_path(entry.path)}`", f"`{render_path(entry.path[:-1])}`"
        yield remove(
            entry.path,
            say("{here} goes: it never did anything, and {where} rejects unknown keys now.", here=here, where=where),
        )
