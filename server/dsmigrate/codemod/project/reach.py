"""Chooses what belongs to the training of an entry script: definitions it reaches that speak of training."""

from __future__ import annotations

from dataclasses import dataclass

from dsmigrate.codemod.project.index import Index
from dsmigrate.codemod.project.outline import IMPORTED_THERE

Definition = tuple[str, str]
"""A file and the name of a top-level definition in it; the name is "" for the module's own statements."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What takes part in the training of an entry script, which is not among it: all of it counts.

    ``files`` are those that speak of training in a definition that the entry script reaches, each with all definitions
    of it that are reached. ``quiet`` are files without a word of training, of which only definitions that write models,
    that lead to one that does, and the bases of such classes are looked at.
    """

    files: dict[str, frozenset[str]]
    quiet: dict[str, frozenset[str]]


def reached(index: Index) -> Reached:
    """The files to convert together with the entry script, and those to be looked at with it."""
    files = index.training_files()
    if len(files) < 2:
        return Reached({}, {})
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
    trains = _leading(refers, {current for current in refers if _trains(index, current)})
    wanted = {path for path, _ in trains} - {index.entry}
    whole = {path: frozenset(name for found, name in refers if found == path and name) for path in sorted(wanted)}
    looked = _leading(refers, {current for current in refers if _writes(index, current)})
    looked |= _bases(index, looked)
    paths = {path for path, name in looked if name} - wanted - {index.entry}
    return Reached(whole, {path: frozenset(name for there, name in looked if there == path) for path in sorted(paths)})


def _leading(refers: dict[Definition, set[Definition]], found: set[Definition]) -> set[Definition]:
    """Definitions, and every one that refers to one of them, by itself or through others."""
    while True:
        more = {current for current, targets in refers.items() if current not in found and targets & found}
        if not more:
            return found
        found |= more


def _bases(index: Index, found: set[Definition]) -> set[Definition]:
    """The bases of classes that write, through all files: they tell whether it is a model, and make what it writes."""
    bases: set[Definition] = set()
    queue = [(path, d) for path, name in found if (d := index.outline(path).definitions.get(name)) is not None]
    queue += [(index.entry, d) for d in index.outline(index.entry).definitions.values()]
    queue = [(path, definition) for path, definition in queue if definition.writes]
    while queue:
        path, definition = queue.pop()
        for name in definition.bases:
            target = (path, name) if name in index.outline(path).definitions else index.resolve(path, name)
            base = index.outline(target[0]).definitions.get(target[1]) if target is not None else None
            if target is not None and base is not None and target not in bases:
                bases.add(target)
                queue.append((target[0], base))
    return bases


def _writes(index: Index, current: Definition) -> bool:
    path, name = current
    return bool(name) and index.outline(path).definitions[name].writes


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
