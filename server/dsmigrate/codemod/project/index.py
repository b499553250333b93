"""Finds the file behind a local import, and the definition behind a dotted name; reads and parses on demand."""

from __future__ import annotations

import ast
import posixpath
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dsmigrate.codemod.project import libraries
from dsmigrate.codemod.project.outline import MAY_IMPORT, Import, Outline, outline, speaks_of_training
from dsmigrate.codemod.project.writing import may_write
from dsmigrate.files import syntax
from dsmigrate.files.text import SourceError, SourceText, decode

Read = Callable[[str], "bytes | None"]
"""Gives the bytes of a file by its path relative to the project root (with ``/``), None where there is none."""

_DEPTH = 12
"""How many re-exports a name is followed through."""


@dataclass(slots=True)
class ModuleFile:
    """One file of the project, read; ``text`` is None where it is no Python that can be read."""

    path: str
    source: bytes
    text: SourceText | None
    python: ast.Module | None = None
    outlined: Outline | None = None
    speaks: bool | None = None


@dataclass(slots=True)
class Index:
    """The modules around an entry script. ``entry`` is its path relative to the project root.

    ``files`` are those that were read; several indices of one project may share them.
    """

    read: Read
    entry: str
    files: dict[str, ModuleFile | None] = field(default_factory=dict)
    bases: list[str] = field(default_factory=list)
    _searched: set[str] = field(default_factory=set)
    _imported: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.bases = list(dict.fromkeys([posixpath.dirname(self.entry), "", "src"]))

    # -- files ----------------------------------------------------------------------------------------------------

    def file(self, path: str) -> ModuleFile | None:
        """A file of the project by its path, read once; None where there is none."""
        if path not in self.files:
            source = libraries.written(path, self._texts()) if libraries.is_library(path) else self.read(path)
            found = None
            if source is not None:
                try:
                    found = ModuleFile(path, source, decode(source))
                except SourceError:
                    found = ModuleFile(path, source, None)
            self.files[path] = found
        return self.files[path]

    def _texts(self) -> list[str]:
        return [f.text.text for path, f in self.files.items() if f and f.text and not libraries.is_library(path)]

    def settle_libraries(self, files: set[str]) -> None:
        """Write the libraries' modules out again, now that all scripts that may use them are known."""
        texts = [f.text.text for path in files if not libraries.is_library(path) and (f := self.file(path)) and f.text]
        for path in filter(libraries.is_library, files):
            source = libraries.written(path, texts)
            self.files[path] = ModuleFile(path, source, decode(source))

    def outline(self, path: str) -> Outline:
        """The outline of a file; an empty one where it cannot be parsed."""
        file = self.file(path)
        if file is None or file.text is None:
            return Outline()
        if file.outlined is None:
            try:
                file.python = syntax.read(file.text.text)
                file.outlined = outline(file.python, file.text.text)
            except (SourceError, RecursionError):
                file.outlined = Outline()
        if path not in self._searched:
            self._searched.add(path)
            self._add_search_paths(path, file.outlined)
        return file.outlined

    def _add_search_paths(self, path: str, found: Outline) -> None:
        here = posixpath.dirname(path)
        for folder in found.search_paths:
            joined = posixpath.normpath(posixpath.join(here, folder))
            joined = "" if joined == "." else joined
            if not joined.startswith(("..", "/")) and joined not in self.bases:
                self.bases.append(joined)

    # -- modules --------------------------------------------------------------------------------------------------

    def module(self, importer: str, module: str, level: int) -> str | None:
        """The path of the module that ``importer`` means by a dotted name with ``level`` leading dots."""
        if level:
            base = posixpath.dirname(importer)
            for _ in range(level - 1):
                if not base:
                    return None
                base = posixpath.dirname(base)
            return self._at(base, module)
        root = module.partition(".")[0]
        for index, base in enumerate(self.bases):
            if index and root in sys.stdlib_module_names:
                return None
            found = self._at(base, module)
            if found is not None:
                return found
        path = libraries.path_of(module)
        return None if path is None or any(self._at(base, root) for base in self.bases) else path

    def _at(self, base: str, module: str) -> str | None:
        stem = posixpath.join(base, *module.split(".")) if module else base
        for path in (f"{stem}.py", posixpath.join(stem, "__init__.py")):
            if (module or path.endswith("__init__.py")) and self.file(path) is not None:
                return path
        return None

    def imported(self, importer: str, item: Import) -> list[str]:
        """The local files that an import reads: the module, and the submodule that the imported name may be."""
        found = []
        path = self.module(importer, item.module, item.level)
        if path is not None:
            found.append(path)
        if item.name is not None:
            inner = self.module(importer, f"{item.module}.{item.name}" if item.module else item.name, item.level)
            if inner is not None:
                found.append(inner)
        return found

    # -- names ----------------------------------------------------------------------------------------------------

    def resolve(self, path: str, text: str, depth: int = _DEPTH) -> tuple[str, str] | None:
        """The file that defines what a dotted name of ``path`` stands for, and its name there; None if not local."""
        if depth == 0:
            return None
        found = self.outline(path)
        root, _, rest = text.partition(".")
        for item in found.imports.get(root, ()):
            target = self._through(path, item, rest, depth)
            if target is not None:
                return target
        if root in found.definitions or root in found.assigned:
            return None
        for item in found.stars:
            module = self.module(path, item.module, item.level)
            target = self.exported(module, text, depth - 1) if module is not None else None
            if target is not None:
                return target
        return None

    def _through(self, path: str, item: Import, rest: str, depth: int) -> tuple[str, str] | None:
        if item.name is None:
            return self._in_package(path, item.module, item.level, rest, depth)
        full = f"{item.module}.{item.name}" if item.module else item.name
        module = self.module(path, item.module, item.level)
        if module is not None:
            target = self.exported(module, f"{item.name}.{rest}" if rest else item.name, depth - 1)
            if target is not None:
                return target
        return self._in_package(path, full, item.level, rest, depth)

    def _in_package(self, path: str, module: str, level: int, rest: str, depth: int) -> tuple[str, str] | None:
        """``a.b.c`` where ``a`` is a module: the longest module name wins."""
        names = rest.split(".") if rest else []
        for count in range(len(names) - 1, -1, -1):
            found = self.module(path, ".".join([module, *names[:count]]), level)
            if found is not None:
                return self.exported(found, ".".join(names[count:]), depth - 1)
        return None

    def exported(self, path: str, text: str, depth: int = _DEPTH) -> tuple[str, str] | None:
        """Where a name that a module exports is really defined."""
        if not text or depth == 0:
            return None
        root = text.partition(".")[0]
        found = self.outline(path)
        if root in found.definitions or root in found.assigned:
            return (path, text)
        return self.resolve(path, text, depth)

    # -- the closure ----------------------------------------------------------------------------------------------

    def training_files(self) -> set[str]:
        """Local files on some way of imports from the entry script to a file that speaks of training, or writes models.

        Files are only searched for words and for the lines of their imports here; what the entry reaches without
        meeting training, or what may be a write, is never parsed.
        """
        imports = self._import_graph()
        self._imported = set(imports)
        speaking = {path for path in imports if self._speaks(path) or self._writes(path)}
        while True:
            more = {path for path, targets in imports.items() if path not in speaking and targets & speaking}
            if not more:
                return speaking
            speaking |= more

    def closure(self) -> set[str]:
        """The entry script and all local files that it imports, by whatever way."""
        return set(self._import_graph())

    def imports_of(self, path: str) -> set[str]:
        """The local files that a file imports itself."""
        return set(self._local_imports(path))

    def _import_graph(self) -> dict[str, set[str]]:
        imports: dict[str, set[str]] = {}
        queue = [self.entry]
        while queue:
            path = queue.pop()
            if path not in imports:
                imports[path] = self.imports_of(path)
                queue.extend(imports[path])
        return imports

    def imported_texts(self) -> Iterator[str]:
        """The texts of all local files that the entry script imports, by whatever way; once ``training_files`` was asked."""
        for path in sorted(self._imported):
            file = self.file(path)
            if file is not None and file.text is not None:
                yield file.text.text

    def _speaks(self, path: str) -> bool:
        file = self.file(path)
        if file is None or file.text is None:
            return False
        if file.speaks is None:
            file.speaks = speaks_of_training(file.text.text)
        return file.speaks

    def _writes(self, path: str) -> bool:
        file = self.file(path)
        if file is None or file.text is None or not may_write(file.text.text):
            return False
        return any(definition.writes for definition in self.outline(path).definitions.values())

    def _local_imports(self, path: str) -> list[str]:
        file = self.file(path)
        if file is None or file.text is None or not MAY_IMPORT.search(file.text.text):
            return []
        if self._speaks(path):
            return [p for item in self.outline(path).every_import() for p in self.imported(path, item)]
        try:
            head = syntax.read("\n".join(import_lines(file.text.text)))
        except SourceError:
            head = None
        found = self.outline(path) if head is None else outline(head, "")
        return [p for item in found.every_import() for p in self.imported(path, item)]


def import_lines(text: str) -> list[str]:
    """The import statements of a source, each taken out of its block; brackets and backslashes are followed."""
    found: list[str] = []
    pending = ""
    for line in text.splitlines():
        if pending:
            pending += "\n" + line
        elif line.lstrip().startswith(("import ", "from ")):
            pending = line.strip()
        else:
            continue
        code = pending.partition("#")[0] if "\n" not in pending else pending
        if code.rstrip().endswith("\\") or pending.count("(") > pending.count(")"):
            continue
        found.append(pending)
        pending = ""
    return found
