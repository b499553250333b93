"""Modules that a conversion changes and other scripts use: who uses what, and both forms side by side."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dsmigrate.codemod import audit
from dsmigrate.codemod.model import UNUSED, Change, FileResult, Kind, Status
from dsmigrate.codemod.project.index import Index, ModuleFile
from dsmigrate.codemod.project.twins import Forms, NoTwinError, line_of, with_twins
from dsmigrate.codemod.project.users import Name, links, reached_from, reaching, referred
from dsmigrate.files.diff import unified
from dsmigrate.files.discovery import discover
from dsmigrate.files.paths import resolved
from dsmigrate.files.text import decode, encode
from dsmigrate.migration.ideas import BESIDE
from dsmigrate.migration.job import Job, Outcome, read_below, relative

_SHOWN = 4


@dataclass(frozen=True, slots=True)
class SharedUse:
    """What others need of a set in its old form.

    ``users`` are their files, as the person would write them, with the definitions that each needs; ``affected`` are
    the definitions of the set that change, and those that refer to one that does and that the script runs.
    """

    root: Path
    users: Mapping[str, frozenset[Name]]
    affected: frozenset[Name]

    @property
    def shared(self) -> frozenset[Name]:
        """The definitions that have to stay for others."""
        return frozenset().union(*self.users.values()) & self.affected


def shared_use(outcome: Outcome, root: Path, converted: set[Path]) -> SharedUse | None:
    """Find the files below ``root``, but for the converted ones, that use what an outcome alters; None without any."""
    files = _files(outcome, root)
    altered = {(way, name) for path, names in outcome.alters.items() for name in names if (way := relative(path, root))}
    index = _before(outcome, root)
    graph = links(index, files[1:])  # the script itself is asked for: it has one form
    everything = {path: frozenset(name for file, name in graph if file == path) for path in files}
    run = reached_from(graph, referred(index, files[0], everything))
    affected = reaching(graph, altered)
    users = {
        user: frozenset(reached_from(graph, names) & affected)
        for user, names in _users(outcome.job, root, affected, converted).items()
    }
    return SharedUse(root, users, frozenset(affected & (run | altered))) if users else None


def with_both_forms(outcome: Outcome, use: SharedUse) -> Outcome:
    """The outcome with twins of what others use, so that these keep working. Raises NoTwinError."""
    root = use.root
    entry = _way(outcome.job.path, root)
    changed = {_way(item.job.path, root): item for item in (outcome, *outcome.modules)}
    old = _before(outcome, root)

    def read_new(path: str) -> bytes | None:
        item = changed.get(path)
        new = item.result.new_source if item is not None else None
        return new if new is not None else old.read(path)

    forms = Forms(old, Index(read_new, entry), entry, use.shared, use.affected)
    texts = with_twins(forms, _files(outcome, root))
    modules = tuple(_with_text(item, texts.get(_way(item.job.path, root)), forms, use) for item in outcome.modules)
    more = [
        _with_text(_unchanged(outcome, path, root), text, forms, use)
        for path, text in texts.items()
        if path not in changed
    ]
    return replace(_with_text(outcome, texts.get(entry), forms, use), modules=(*modules, *more), alters={})


def _unchanged(outcome: Outcome, path: str, root: Path) -> Outcome:
    """A file of the set that the conversion itself had left as it is."""
    source = read_below(outcome.job, root, path) or b""
    job = Job(root / path, outcome.modules[0].job.root, outcome.job.options, source)
    return Outcome(job, FileResult((root / path).as_posix(), Status.CONVERTED), source, decode(source).encoding)


def _with_text(outcome: Outcome, text: str | None, forms: Forms, use: SharedUse) -> Outcome:
    if text is None:
        return outcome
    source = decode(outcome.source)
    path = _way(outcome.job.path, use.root)
    imported = _imported(text)
    told = [*(_still_there(change, imported) for change in outcome.result.changes), *_told(forms, path, use)]
    told += [
        Change(BESIDE, Kind.CONVERTED, line, line, "the form for the engine is used here",
               "the old form stays for other scripts")
        for line in audit.uncovered_lines(source.text, text, told)
    ]  # fmt: skip
    todos = any(change.kind is Kind.TODO for change in told)
    result = replace(
        outcome.result,
        status=Status.CONVERTED_WITH_TODOS if todos else Status.CONVERTED,
        changes=tuple(sorted(told, key=lambda change: (change.line, change.code))),
        diff=unified(source.text, text, outcome.result.path),
        new_source=encode(text, source),
    )
    return replace(outcome, result=result)


def _still_there(change: Change, imported: set[str]) -> Change:
    """An import that only the new form does without came back for the old one."""
    name = change.message.removeprefix(UNUSED)
    if not change.message.startswith(UNUSED) or name not in imported:
        return change
    return replace(change, code=BESIDE, message=f"the import of {name} stands behind the others now",
                   reason="only the old form, which stays for other scripts, uses it")  # fmt: skip


def _imported(text: str) -> set[str]:
    imports = (node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom))
    return {alias.asname or alias.name for node in imports for alias in node.names}


def _told(forms: Forms, path: str, use: SharedUse) -> list[Change]:
    found = []
    for name, twin in sorted(forms.names.items()):
        if name[0] == path:
            users = [user for user, names in use.users.items() if name in names]
            shown = ", ".join(users[:_SHOWN]) + (" …" if len(users) > _SHOWN else "")
            line = line_of(forms.old, name)
            message = f"{name[1]} stays for {shown}; {twin} beside it is for the engine"
            reason = "a module that several scripts use is changed only if all of them keep working"
            found.append(Change(BESIDE, Kind.KEPT, line, line, message, reason))
    return found


def _before(outcome: Outcome, root: Path) -> Index:
    entry = _way(outcome.job.path, root)
    return Index(lambda path: outcome.source if path == entry else read_below(outcome.job, root, path), entry)


def _files(outcome: Outcome, root: Path) -> list[str]:
    """The files of the training, the script first."""
    entry = _way(outcome.job.path, root)
    return [entry, *(way for path in outcome.looked_at if (way := _way(path, root)) != entry)]


def _way(path: Path, root: Path) -> str:
    way = relative(path, root) or relative(resolved(path), resolved(root))
    if way is None:
        raise NoTwinError(f"{path} is outside of {root}")
    return way


def _users(job: Job, root: Path, affected: set[Name], converted: set[Path]) -> dict[str, set[Name]]:
    """Files of a project, outside of the converted ones, that refer to affected names, with these names."""
    names: Mapping[str, frozenset[str]] = {
        path: frozenset(name for file, name in affected if file == path) for path, _ in affected
    }
    stems = [Path(way).stem if Path(way).name != "__init__.py" else Path(way).parent.name for way in names]
    # A package may hand the names on, so that a user never says where they are defined.
    words = [word.encode() for word in {*stems, *(name for _, name in affected)}]
    users: dict[str, set[Name]] = {}
    known: dict[str, ModuleFile | None] = {}
    for file in discover([root]):
        if resolved(file.path) in converted:
            continue
        way = relative(file.path, root)
        source = read_below(job, root, way) if way is not None else None
        if way is None or source is None or not any(word in source for word in words):
            continue
        hits = referred(Index(lambda path: read_below(job, root, path), way, known), way, names)
        if hits:
            users[file.path.as_posix()] = hits
    return users
