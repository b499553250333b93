"""The modules around an entry script: which file an import means. Files are read when they are asked for, each once."""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dsmigrate.codemod.program.module import Module, Parsed, parsed
from dsmigrate.files.text import SourceError

Read = Callable[[str], "bytes | None"]
"""Gives the bytes of a file by its path relative to the project's root, None where there is none."""

ROOT = "/project/"
"""What stands for the project's root in paths that a script works out from ``__file__``."""


@dataclass
class Cache:
    """Files that were read, shared by the analyses of one run. ``name`` is that of the root's folder."""

    contents: dict[str, bytes | None] = field(default_factory=dict)
    modules: dict[tuple[str, str], Module | None] = field(default_factory=dict)
    trees: dict[str, Parsed] = field(default_factory=dict)
    name: str = ""

    def parsed(self, path: str, data: bytes) -> Parsed:
        """A file with its tree; raises SourceError where it is no Python that can be read."""
        known = self.trees.get(path)
        if known is None or known.data != data:
            known = self.trees[path] = parsed(data)
        return known

    def changed(self, texts: Mapping[str, bytes]) -> Cache:
        """The same files with others in the place of some."""
        return Cache(
            {path: data for path, data in self.contents.items() if path not in texts},
            {key: module for key, module in self.modules.items() if key[0] not in texts},
            {path: known for path, known in self.trees.items() if texts.get(path, known.data) == known.data},
            self.name,
        )


@dataclass
class Project:
    """The files below one root, as seen from an entry script.

    ``bases`` are the folders that imports start from: the script's, those around it (from which it is started as a module), and what it puts on ``sys.path``.
    """

    read: Read
    entry: str
    cache: Cache = field(default_factory=Cache)
    bases: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        here = posixpath.dirname(self.entry)
        above = [here]
        while above[-1].strip("/"):
            above.append(posixpath.dirname(above[-1]))
        self.bases = list(dict.fromkeys([*above, *self.bases]))

    def source(self, path: str) -> bytes | None:
        """The bytes of a file, None where there is none."""
        known = self.cache.contents
        if path not in known:
            known[path] = self.read(path)
        return known[path]

    def module(self, path: str, name: str) -> Module | None:
        """A file as a module, None where there is none or it is no Python that can be read."""
        key = (path, name)
        known = self.cache.modules
        if key not in known:
            data = self.source(path)
            known[key] = None
            if data is not None:
                with contextlib.suppress(SourceError):
                    read = self.cache.parsed(path, data)
                    known[key] = Module(path, name, read.source, read.tree)
        return known[key]

    def find(self, dotted: str) -> str | None:
        """The path of the file that a dotted name of a module means, seen from the script; None for a library's."""
        tail = dotted.replace(".", "/")
        for base in self.bases:
            found = self._below(posixpath.join(base, tail))
            if found is not None:
                return found
        top, _, inside = tail.partition("/")
        if top == self.cache.name:  # imported from the folder above the root
            return self._below(inside or "__init__")
        return None

    def is_package(self, dotted: str) -> bool:
        """Whether a dotted name means a folder of the project with or without ``__init__.py``, for names inside it."""
        found = self.find(dotted)
        return found is None or found.endswith("__init__.py")

    def add_base(self, folder: str) -> None:
        """Note a folder that the script puts on ``sys.path``, as a path below ``ROOT``."""
        inside = posixpath.normpath(folder)
        if inside + "/" == ROOT:
            inside = ""
        elif inside.startswith(ROOT):
            inside = inside[len(ROOT) :]
        else:
            return
        if inside not in self.bases:
            self.bases.append(inside)

    def _below(self, path: str) -> str | None:
        path = posixpath.normpath(path)
        for name in (f"{path}.py", f"{path}/__init__.py"):
            if self.source(name) is not None:
                return name
        return None

    def speaks_of(self, path: str, words: re.Pattern[str]) -> bool:
        """Whether the text of a file has one of some words; cheaper than to parse it."""
        data = self.source(path)
        return data is not None and words.search(data.decode("utf-8", "replace")) is not None
