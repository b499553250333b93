"""Chooses what belongs to the training of an entry script: definitions it reaches that speak of training."""

from __future__ import annotations

from dsmigrate.codemod.project.index import Index
from dsmigrate.codemod.project.outline import IMPORTED_THERE

Definition = tuple[str, str]
"""A file and the name of a top-level definition in it; the name is "" for the module's own statements."""


def reached(index: Index) -> dict[str, frozenset[str]]:
    """The files to convert together with the entry script, each with its top-level definitions that are reached.

    A file is one of them when a definition that the entry script reaches speaks of training there, or leads to one
    that does. The entry script itself is not among them: all of it counts.
    """
    files = index.training_files()
    if len(files) < 2:
        return {}
    index.settle_libraries(files)
    refers: dict[Definition, set[Definition]] = {}
    entry = index.outline(index.entry)
    start: Definition = (index.entry, "")
    names = set(entry.refers_to).union(*(d.refers_to for d in entry.definitions.values()))
    refers[start] = _targets(index, index.entry, names, files)
    queue = list(refers[start])
    while queue:
        current = queue.pop()
        if current in refers:
            continue
        refers[current] = _of(index, current, files)
        queue.extend(refers[current])
    trains = {current for current in refers if _trains(index, current)}
    while True:
        more = {current for current, targets in refers.items() if current not in trains and targets & trains}
        if not more:
            break
        trains |= more
    wanted = {path for path, _ in trains} - {index.entry}
    return {path: frozenset(name for found, name in refers if found == path and name) for path in sorted(wanted)}


def _of(index: Index, current: Definition, files: set[str]) -> set[Definition]:
    path, name = current
    found = index.outline(path)
    if not name:
        return _targets(index, path, set(found.refers_to), files)
    definition = found.definitions[name]
    return _targets(index, path, set(definition.refers_to), files) | {(path, "")}


def _targets(index: Index, path: str, names: set[str], files: set[str]) -> set[Definition]:
    """The local definitions that dotted names of a file stand for."""
    found: set[Definition] = set()
    outline = index.outline(path)
    for name in names:
        text = name.removeprefix(IMPORTED_THERE)
        root = text.partition(".")[0]
        if root in outline.definitions and text == name:
            if path != index.entry:
                found.add((path, root))
            continue
        if root not in outline.imports and not outline.stars:
            continue
        target = index.resolve(path, text)
        if target is None or target[0] not in files or target[0] == index.entry:
            continue
        root = target[1].partition(".")[0]
        found.add((target[0], root if root in index.outline(target[0]).definitions else ""))
    return found


def _trains(index: Index, current: Definition) -> bool:
    path, name = current
    found = index.outline(path)
    return found.definitions[name].trains if name else found.trains
