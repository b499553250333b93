"""Which definitions of other modules a file refers to, and which definitions of a set of files refer to each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from dsmigrate.codemod.project.index import Index
from dsmigrate.codemod.project.outline import IMPORTED_THERE, own_references

Name: TypeAlias = "tuple[str, str]"
"""A file, relative to the project root, and a top-level function or class of it."""

Links: TypeAlias = "Mapping[Name, frozenset[Name]]"
"""From a definition to those that it refers to."""


def referred(index: Index, path: str, names: Mapping[str, frozenset[str]]) -> set[Name]:
    """The names, out of those given by file, that the code of ``path`` uses; importing alone (a re-export) is no use."""
    outline = index.outline(path)
    texts = set(outline.refers_to).union(*(d.refers_to for d in outline.definitions.values()))
    return {target for target in _targets(index, path, texts) if target[1] in names.get(target[0], ())}


def links(index: Index, files: Iterable[str]) -> Links:
    """What every top-level function and class of ``files`` refers to."""
    return {
        (path, name): frozenset(_targets(index, path, definition.refers_to))
        for path in files
        for name, definition in index.outline(path).definitions.items()
    }


def own_uses(index: Index, path: str) -> set[Name]:
    """What a module's own statements refer to, outside of its functions and classes."""
    file = index.file(path)
    index.outline(path)
    return _targets(index, path, own_references(file.python)) if file is not None and file.python is not None else set()


def reaching(graph: Links, names: Iterable[Name]) -> set[Name]:
    """``names``, and every definition that refers to one of them, by itself or through others."""
    found = set(names)
    while True:
        more = {name for name, targets in graph.items() if name not in found and targets & found}
        if not more:
            return found
        found |= more


def reached_from(graph: Links, names: Iterable[Name]) -> set[Name]:
    """``names``, and every definition that one of them refers to, by itself or through others."""
    found: set[Name] = set()
    queue = list(names)
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            queue.extend(graph.get(name, ()))
    return found


def _targets(index: Index, path: str, texts: Iterable[str]) -> set[Name]:
    own = index.outline(path).definitions
    found: set[Name] = set()
    for text in texts:
        plain = text.removeprefix(IMPORTED_THERE)
        target = index.resolve(path, plain)
        root = plain.partition(".")[0]
        if target is not None:
            found.add((target[0], target[1].partition(".")[0]))
        elif root in own and plain == text:
            found.add((path, root))
    return found
