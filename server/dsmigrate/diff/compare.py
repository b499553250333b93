"""The changes between two sides."""

from __future__ import annotations

from dsmigrate.diff.meaning import READ, same
from dsmigrate.diff.model import Change, Kind
from dsmigrate.diff.side import Side
from dsmigrate.knowledge import MISSING
from dsmigrate.rules.context import TYPED, UNKNOWN

_OPEN = ((UNKNOWN, False), (False, UNKNOWN))
_OTHER_FORMAT = {"fp16.enabled": "bf16.enabled", "bf16.enabled": "fp16.enabled"}


def changes(old: Side, new: Side) -> dict[str, Change]:
    """Return every leaf that is written differently or means something else, by canonical path.

    Between two releases, keys that neither file writes are compared by their defaults as well.
    """
    differing = {
        path: None
        for path in (*old.given, *new.given)
        if _is_written_otherwise(old, new, path) or not same(old.meant(path), new.meant(path))
    }
    if old.known.version != new.known.version:
        differing |= dict.fromkeys(_moved_defaults(old, new))
    return {path: _change(old, new, path) for path in sorted(differing)}


def _is_written_otherwise(old: Side, new: Side, path: str) -> bool:
    if path not in old.given or path not in new.given:
        return True
    (before, there), (after, here) = old.given[path], new.given[path]
    return there.path != here.path or not _alike(before, after)


def _alike(before: object, after: object) -> bool:
    """Return whether two values are written alike, but for the spelling of numbers: true is not 1."""
    if isinstance(before, bool) is not isinstance(after, bool):
        return False
    return same(before, after)


def _moved_defaults(old: Side, new: Side) -> list[str]:
    """Return the keys that neither file writes, both releases read, and that have come to mean something else.

    Keys of a section that is left out and is then nothing at all are not among them.
    """
    found = []
    for path in new.known.every_path():
        if path in old.given or path in new.given or "*" in path or "[]" in path:
            continue
        before, after = old.known.key(path), new.known.key(path)
        if before is None or after is None or before.status not in READ or after.status not in READ:
            continue
        if before.alias_of or before.is_section or _is_left_out(old, path) or _is_left_out(new, path):
            continue
        if not same(old.meant(path), new.meant(path)):
            found.append(path)
    return found + [path for path in _moved_parameters(old, new) if not same(old.meant(path), new.meant(path))]


def _moved_parameters(old: Side, new: Side) -> list[str]:
    """Return the parameters that neither file writes and whose default moved in some release."""
    found = []
    for section in TYPED:
        facts = new.context.type_of(section)
        every = facts.parameters.values() if facts is not None else ()
        found += [f"{section}.params.{parameter.name}" for parameter in every if parameter.changes]
    return [path for path in found if path not in old.given and path not in new.given]


def _is_left_out(side: Side, path: str) -> bool:
    """Return whether a section around a key is absent, and means nothing when absent."""
    section = path.rpartition(".")[0]
    while section:
        key = side.known.key(section)
        absent = key is not None and (key.default is None or key.counts_empty) and not side.context.has(section)
        if absent and section not in side.sections:
            return True
        section = section.rpartition(".")[0]
    return False


def _change(old: Side, new: Side, path: str) -> Change:
    meant = old.meant(path), new.meant(path)
    return Change(
        path=path,
        kind=_kind(old, new, path),
        old=old.written(path),
        new=new.written(path),
        old_meant=meant[0],
        new_meant=meant[1],
        differs=_differs(old, new, path),
        old_spot=old.given[path][1] if path in old.given else None,
        new_spot=new.given[path][1] if path in new.given else None,
    )


def _differs(old: Side, new: Side, path: str) -> bool:
    """Return whether DeepSpeed's config differs; where one release does not know the key, it is as if left out."""
    before, after = old.meant(path), new.meant(path)
    if _is_settled(old, path) and _is_settled(new, path) and (before, after) in _OPEN:
        return False
    if old.known.version != new.known.version and not (old.refuses(path) or new.refuses(path)):
        if not old.reads(path) and new.reads(path):
            before = new.known.default(path)
        elif not new.reads(path) and old.reads(path):
            after = old.known.default(path)
    return not same(before, after)


def _is_settled(side: Side, path: str) -> bool:
    """Return whether a side has the other 16-bit format on, so that a consumer has nothing to decide.

    Both at once are refused.
    """
    other = _OTHER_FORMAT.get(path)
    return other is not None and side.context.value(other) is True


def _kind(old: Side, new: Side, path: str) -> Kind:
    before, after = old.written(path), new.written(path)
    if before is MISSING and after is not MISSING:
        return Kind.ADDED
    if after is MISSING and before is not MISSING:
        return Kind.REMOVED
    moved = path in old.given and path in new.given and old.given[path][1].path != new.given[path][1].path
    return Kind.RENAMED if moved else Kind.CHANGED
