"""Keys that the new release does not read any more: under their new name where there is one, else taken out."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import render_path
from dsmigrate.editing.actions.draft import Step, remove, rename
from dsmigrate.editing.actions.upgrading.crossing import HERE, Crossing, Left
from dsmigrate.knowledge import Status
from dsmigrate.knowledge.paths import name, parent
from dsmigrate.languages import say


def renamed(crossing: Crossing) -> Iterator[Step | Left]:
    """Yield the new name, or the removal, of each key that the earlier release read.

    What that release passed over as well stays as it is: read under a new name it would begin to act.
    """
    for entry, key in crossing.entries():
        if key.status is not Status.NO_LONGER or not crossing.was_read(key):
            continue
        around = crossing.context.known.key(entry.path[:-1]) if len(entry.path) > 1 else None
        if around is not None and around.status not in HERE:
            continue
        here = f"`{render_path(entry.path)}`"
        new = next((path for path in key.successors if parent(path) == key.parent), None)
        if new is None:
            yield remove(
                entry.path, say("{here} goes: DeepSpeed {until} and later do not read it.", here=here, until=key.until)
            )
        elif crossing.context.has(new):
            yield remove(entry.path, say("{here} goes: `{new}` has taken its place.", here=here, new=new))
        else:
            yield rename(
                entry.path,
                name(new),
                say("{here} is called `{name}` since {until}.", here=here, name=name(new), until=key.until),
            )
