"""``ds_compat.py``: where it goes in a project, how its users import it, and what it has to hold."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dsmigrate.codemod.program.edits import Import
from dsmigrate.codemod.program.module import Module
from dsmigrate.codemod.program.project import Project

NAME = "ds_compat"
_USED = re.compile(rf"\b{NAME}\.(\w+)")


@dataclass(frozen=True, slots=True)
class Home:
    """Where the file goes, as a path below the project's root, and the package that it is imported from; "" for none."""

    path: str
    package: str = ""

    def imported(self, module: Module) -> Import:
        """The import of a file that uses it."""
        return Import(module, self.package, NAME) if self.package else Import(module, NAME)


def parts_in(texts: Iterable[str]) -> frozenset[str]:
    """The names that some texts use of it."""
    return frozenset(name for text in texts for name in _USED.findall(text))


def home_of(project: Project, users: Mapping[str, Module]) -> Home:
    """The place for the files that use it: beside the entry, in the package that they share, or where their imports start."""
    here = posixpath.dirname(project.entry)
    shared = [module for path, module in sorted(users.items()) if path != project.entry]
    bases = {_base(module) for module in shared}
    if not bases or bases == {here}:
        own = project.module(project.entry, "__main__")
        return Home(posixpath.join(here, f"{NAME}.py"), _package_of_entry(own) if own is not None and not bases else "")
    packages = {module.name.split(".")[0] for module in shared}
    base = min(bases - {here})
    if len(packages) == 1 and bases == {base}:
        package = packages.pop()
        if project.source(posixpath.join(base, package, "__init__.py")) is not None:
            return Home(posixpath.join(base, package, f"{NAME}.py"), package)
    return Home(posixpath.join(base, f"{NAME}.py"))


def _base(module: Module) -> str:
    """The folder from which a module was imported by its dotted name."""
    folder = posixpath.dirname(module.path)
    inside = module.package.count(".") + 1 if module.package else 0
    for _ in range(inside):
        folder = posixpath.dirname(folder)
    return folder


def _package_of_entry(entry: Module) -> str:
    """The package of a script that is run as a part of one, as its relative imports say: ``.``."""
    relative = any(isinstance(node, ast.ImportFrom) and node.level for node in entry.tree.body)
    return "." if relative else ""
