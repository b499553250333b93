"""Which scripts of a project import some of its files, or what imports these."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from dsmigrate.files.discovery import discover
from dsmigrate.files.paths import resolved
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError

_IMPORT = re.compile(rb"^[ \t]*(?:from|import)\b", re.MULTILINE)
_STATEMENT = re.compile(
    rb"^[ \t]*(import[ \t][^\n#]*|from[ \t]*[.\w]+[ \t]+import\b[ \t]*(?:\([^)]*\)|[^\n#(]*))", re.MULTILINE
)
_UNUSUAL = re.compile(
    rb"[:;][ \t]*(?:import[ \t]+\w|from[ \t]+[.\w]+[ \t]+import\b)|^[ \t]*(?:import|from)\b[^\n]*\\\r?$", re.MULTILINE
)
"""Imports behind another statement on a line, and over several lines with backslashes."""
_WORD = re.compile(rb"\w+")


def users(root: Path, files: Iterable[Path]) -> set[Path]:
    """The scripts below a folder that import some files, or what imports them."""
    sources: dict[Path, bytes] = {}
    for found in discover([root]):
        try:
            sources[resolved(found.path)] = read(found.path)
        except SourceError:
            continue
    importers = _Importers(sources)
    reached: set[Path] = set()
    pending = list(files)
    while pending:
        file = pending.pop()
        for importer in importers.of(file) - reached:
            reached.add(importer)
            pending.append(importer)
    return {
        path for path in reached if b"__main__" in sources[path] or (not importers.of(path) and _acts(sources[path]))
    }


class _Importers:
    """Who imports what among some files."""

    def __init__(self, sources: dict[Path, bytes]) -> None:
        self._sources = sources
        self._said = {
            path: frozenset(_WORD.findall(source)) if _IMPORT.search(source) else frozenset()
            for path, source in sources.items()
        }
        self._modules: dict[str, list[tuple[tuple[str, ...], Path]]] = defaultdict(list)
        for path in sources:
            named = _parts(path)
            self._modules[named[-1]].append((named, path))
        self._imported: dict[Path, frozenset[Path]] = {}

    def of(self, file: Path) -> set[Path]:
        """The files that import one."""
        name = _parts(file)[-1].encode()
        return {
            path for path, said in self._said.items() if name in said and path != file and file in self._imports(path)
        }

    def _imports(self, path: Path) -> frozenset[Path]:
        if path not in self._imported:
            self._imported[path] = frozenset(
                file for level, parts in _asked(self._sources[path]) for file in self._meant(path, level, parts)
            )
        return self._imported[path]

    def _meant(self, importer: Path, level: int, parts: tuple[str, ...]) -> list[Path]:
        """The files that a dotted name may lead to, the packages on the way included."""
        if level:
            base = importer.parents[min(level, len(importer.parents)) - 1]
            parts = (*_parts(base / "__init__.py"), *parts)
        here, found = importer.parent.parts, list[Path]()
        for end in range(1, len(parts) + 1):
            some = parts[:end]
            files = [(named, file) for named, file in self._modules.get(some[-1], ()) if named[-end:] == some]
            above = [file for named, file in files if here[: len(named) - end] == named[:-end]]
            anywhere = level or parts[0] not in sys.stdlib_module_names
            found += above or ([file for _, file in files] if anywhere else [])
        return found


def _parts(file: Path) -> tuple[str, ...]:
    """The dotted name of a file, from the root of the disk."""
    return file.parent.parts if file.name == "__init__.py" else (*file.parent.parts, file.stem)


def _acts(source: bytes) -> bool:
    """Whether a file does something of its own when it is run: it calls, loops or opens outside of any definition."""
    tree = _parsed(source)
    return tree is not None and any(
        isinstance(node, ast.For | ast.While | ast.With)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        for node in tree.body
    )


def _parsed(source: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _imports_in(source: bytes) -> Iterator[ast.AST]:
    """The import statements of a file, by its lines: to parse all of it costs twenty times as much."""
    said = [one.strip() for one in _STATEMENT.findall(source)]
    trees = {b"": _parsed(b"\n".join(said))}
    if trees[b""] is None:  # lines of a text read like imports
        trees = {one: _parsed(one) for one in said}
    if _UNUSUAL.search(source) or any(tree is None and b"(" in one for one, tree in trees.items()):
        trees = {b"": _parsed(source)}
    for tree in trees.values():
        yield from () if tree is None else ast.walk(tree)


def _asked(source: bytes) -> Iterator[tuple[int, tuple[str, ...]]]:
    """What a file imports: how many dots in front, and the parts of the name."""
    for node in _imports_in(source):
        if isinstance(node, ast.Import):
            yield from ((0, tuple(alias.name.split("."))) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            yield from ((node.level, (*module, alias.name)) for alias in node.names)
            if module:
                yield node.level, module


__all__ = ["users"]
