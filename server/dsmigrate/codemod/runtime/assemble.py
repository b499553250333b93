"""Puts ``ds_compat.py`` together: the definitions that a project needs, and what these need, in one file.

A pure function of texts. The file says in its head which names were asked for, and carries a checksum of itself, so
that a later run tells its own text from one that somebody has changed: the first is written anew, with what another
script needs beside, in the second only what is missing is added.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache

PACKAGE = __name__.rpartition(".")[0]

_HEAD = '''"""What the converted training scripts of this project need besides DeepSpeed.

Written by dsmigrate {release}. It is yours now: edit it freely. If another script of the project is converted,
dsmigrate adds what that one needs, and keeps your changes.
"""
'''
_SIGN = "Written by dsmigrate"
_MARK = re.compile(r"^# parts: (?P<names>(?:\w| |\n# )+)\n# sha256: (?P<digest>[0-9a-f]{16})\n", re.MULTILINE)


class Origin(Enum):
    """What stood in the place of the file."""

    NOTHING = "nothing"
    OURS = "ours"
    """What an earlier run wrote, unchanged."""
    EDITED = "edited"
    """What an earlier run wrote, and somebody has changed since."""
    FOREIGN = "foreign"
    """A file of the project that no run wrote: the name is taken."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """The text of the file, and what it takes the place of. For a foreign file the text is that file's."""

    text: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class _Definition:
    """A function, class or constant of a part: its lines, and the names it reads."""

    name: str
    part: str
    text: str
    reads: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Part:
    """A part: the first line of its docstring, what it defines in order, and what it imports, by the bound name."""

    title: str
    definitions: tuple[_Definition, ...]
    imports: Mapping[str, tuple[str, str]]
    """``{"dist": ("", "torch.distributed as dist"), "Any": ("typing", "Any")}``."""


def assemble(names: Iterable[str], sources: Mapping[str, str], release: str, existing: str | None = None) -> Assembled:
    """Return the text of ``ds_compat.py``.

    Args:
        names: what the scripts of the project import from it; definitions of the parts.
        sources: the sources of the parts, by their names, in the order in which they shall stand.
        release: of dsmigrate, for the head.
        existing: the file as it is, where there is one.

    Raises:
        ValueError: no part defines a name.
    """
    parts = {name: _read(name, source) for name, source in sources.items()}
    defined = {one.name for part in parts.values() for one in part.definitions}
    wanted = set(names)
    if unknown := sorted(wanted - defined):
        raise ValueError(f"no part defines {', '.join(unknown)}")
    if existing is None:
        return Assembled(_written(wanted, parts, release), Origin.NOTHING)
    text = existing.replace("\r\n", "\n")
    mark = _MARK.search(text)
    if mark is None and _SIGN not in text:
        return Assembled(existing, Origin.FOREIGN)
    if mark is not None and mark["digest"] == _digest(_MARK.sub("", text, count=1)):
        known = wanted | defined.intersection(mark["names"].replace("#", "").split())
        newline = "\r\n" if "\r\n" in existing else "\n"
        return Assembled(_written(known, parts, release).replace("\n", newline), Origin.OURS)
    return Assembled(_completed(existing, wanted, parts), Origin.EDITED)


def _written(names: set[str], parts: Mapping[str, _Part], release: str) -> str:
    """The whole file."""
    chosen = _needed(names, parts)
    body = f"\nfrom __future__ import annotations\n\n{_imports(chosen, parts)}{_definitions(chosen, parts)}"
    head = _HEAD.format(release=release)
    listed = textwrap.fill(f"parts: {' '.join(sorted(names))}", 118, break_long_words=False).replace("\n", "\n# ")
    return f"{head}# {listed}\n# sha256: {_digest(head + body)}\n{body}"


def _completed(existing: str, names: set[str], parts: Mapping[str, _Part]) -> str:
    """A changed file, and below it what it lacks; nothing of it is touched."""
    there = {name for statement in ast.parse(existing).body for name in _bound(statement)}
    missing = [one for one in _needed(names, parts) if one.name not in there]
    if not missing:
        return existing
    newline = "\r\n" if "\r\n" in existing else "\n"
    added = f"\n\n\n{_imports(missing, parts, there)}{_definitions(missing, parts)}"
    return existing.rstrip() + added.replace("\n", newline)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _needed(names: set[str], parts: Mapping[str, _Part]) -> list[_Definition]:
    """The definitions of these names and all that they read in turn, in the order of the parts."""
    defined = {one.name: one for part in parts.values() for one in part.definitions}
    found, asked = set(), list(names)
    while asked:
        name = asked.pop()
        if name in defined and name not in found:
            found.add(name)
            asked += defined[name].reads
    return [one for one in defined.values() if one.name in found]


def _imports(chosen: list[_Definition], parts: Mapping[str, _Part], there: Iterable[str] = ()) -> str:
    """The import statements that these definitions need, in the order of isort."""
    plain: set[str] = set()
    members: dict[str, set[str]] = {}
    for one in chosen:
        for name in one.reads & parts[one.part].imports.keys() - set(there):
            module, text = parts[one.part].imports[name]
            if not module:
                plain.add(text)
            elif not module.startswith(PACKAGE):
                members.setdefault(module, set()).add(text)
    lines = [f"import {text}" for text in sorted(plain)]
    lines += [f"from {module} import {', '.join(sorted(texts))}" for module, texts in sorted(members.items())]
    ours = [line for line in lines if line.split()[1].partition(".")[0] in sys.stdlib_module_names]
    groups = (ours, [line for line in lines if line not in ours])
    return "\n".join("".join(f"{line}\n" for line in group) for group in groups if group)


def _definitions(chosen: list[_Definition], parts: Mapping[str, _Part]) -> str:
    """The definitions, those of a part under its title."""
    text = ""
    for name, part in parts.items():
        own = [one.text for one in chosen if one.part == name]
        text += "".join(f"\n\n{one}\n" for one in ([f"# {part.title}", *own] if own else ()))
    return text


@cache
def _read(name: str, source: str) -> _Part:
    tree, lines = ast.parse(source), source.splitlines()
    title = (ast.get_docstring(tree) or name).partition("\n")[0]
    imports: dict[str, tuple[str, str]] = {}
    found, end = [], 0
    for statement in tree.body:
        own = "\n".join(lines[end : statement.end_lineno]).strip("\n")  # with the comment above it
        end = statement.end_lineno or end
        if isinstance(statement, ast.Import | ast.ImportFrom):
            module = (statement.module or "") if isinstance(statement, ast.ImportFrom) else ""
            for bound, alias in zip(_bound(statement), statement.names, strict=True):
                imports[bound] = (module, alias.name + (f" as {alias.asname}" if alias.asname else ""))
        elif bound_names := _bound(statement):
            reads = frozenset(node.id for node in ast.walk(statement) if isinstance(node, ast.Name))
            found.append(_Definition(bound_names[0], name, own, reads))
    return _Part(title, tuple(found), imports)


def _bound(statement: ast.stmt) -> list[str]:
    """The names that a statement of a module binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]
