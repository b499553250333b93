"""Which definitions of other modules a file refers to."""

from __future__ import annotations

from collections.abc import Mapping

from dsmigrate.codemod.project.index import Index
from dsmigrate.codemod.project.outline import IMPORTED_THERE


def referred(index: Index, path: str, names: Mapping[str, frozenset[str]]) -> set[str]:
    """The names, out of those given by file, that the code of ``path`` uses; importing alone (a re-export) is no use."""
    outline = index.outline(path)
    texts = set(outline.refers_to).union(*(d.refers_to for d in outline.definitions.values()))
    found = set()
    for text in texts:
        target = index.resolve(path, text.removeprefix(IMPORTED_THERE))
        if target is not None and target[1].partition(".")[0] in names.get(target[0], ()):
            found.add(target[1].partition(".")[0])
    return found
