"""Three configs: a base and two descendants, for the review of a merge."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from dsmigrate.diff.job import Compared, Source, compare
from dsmigrate.diff.model import Change, Spot
from dsmigrate.document import Object, Path, parse
from dsmigrate.knowledge import MISSING
from dsmigrate.rules import Finding, Severity, check
from dsmigrate.settings.diff import DiffSettings


@dataclass(frozen=True, slots=True)
class Conflict:
    """A key that both sides change to something else; the changes are against the base."""

    path: str
    ours: Change
    theirs: Change


@dataclass(frozen=True, slots=True)
class Merged:
    """What each side does to the base, where they disagree, and what goes wrong only when both are taken.

    ``agreed`` are the paths that both change alike. ``together`` are errors and warnings of the merged config that
    neither side has; empty where there are conflicts, as there is no merged config then.
    """

    ours: Compared
    theirs: Compared
    conflicts: tuple[Conflict, ...]
    agreed: tuple[str, ...]
    together: tuple[Finding, ...]


def compare_three(base: Source, ours: Source, theirs: Source, settings: DiffSettings) -> Merged:
    """Compare two descendants with their base and with each other, as git would merge them.

    Meanings are compared: a key that one side only spells otherwise is in no conflict. Both sides are read by the
    release and the consumer that hold for ours. Raises UnreadableError.
    """
    left = compare(base, ours, settings)
    same = replace(settings.check, version=left.new.known.version, consumer=left.new.consumer)
    right = compare(base, theirs, replace(settings, check=same))
    mine, other = _written(left), _written(right)
    both = [path for path in mine if path in other]
    agreed = {path: None for path in both if mine[path].new_meant == other[path].new_meant}
    conflicts = tuple(Conflict(path, mine[path], other[path]) for path in both if path not in agreed)
    together = () if conflicts else _together(left, right)
    return Merged(left, right, conflicts, tuple(agreed), together)


def _written(compared: Compared) -> dict[str, Change]:
    """Return the changes of meaning that are written in one of both files, and do not follow from others."""
    return {
        path: change
        for path, change in compared.result.changes.items()
        if change.differs and (change.old_spot or change.new_spot) is not None
    }


def _together(left: Compared, right: Compared) -> tuple[Finding, ...]:
    """Return the findings of ours with the edits of theirs that neither of the two has."""
    view = left.new
    config = view.document.value()
    if not isinstance(config, dict) or not isinstance(right.new.document.root, Object):
        return ()
    for change in right.result.changes.values():
        if change.old_spot is not None and (change.new_spot is None or change.new_spot.path != change.old_spot.path):
            _take(config, change.old_spot.path)
        if change.new_spot is not None and change.new is not MISSING:
            _put(config, change.new_spot, right)
    known = {(found.code, found.path) for side in (left.new, right.new) for found in side.findings}
    found = check(parse(json.dumps(config, indent=2)), view.settings)
    severe = (Severity.ERROR, Severity.WARNING)
    return tuple(one for one in found if one.severity in severe and (one.code, one.path) not in known)


def _take(config: dict[str, Any], path: Path) -> None:
    inner: object = config
    for name in path[:-1]:
        inner = inner.get(str(name)) if isinstance(inner, dict) else None
    if isinstance(inner, dict):
        inner.pop(str(path[-1]), None)


def _put(config: dict[str, Any], spot: Spot, side: Compared) -> None:
    node = side.new.document.node_at(spot.path)
    if node is None:
        return
    for name in spot.path[:-1]:
        inner = config.setdefault(str(name), {})
        if not isinstance(inner, dict):
            return
        config = inner
    config[str(spot.path[-1])] = node.value()
