"""Modules of a training that other scripts import too: these go on without DeepSpeed where they do not use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from dsmigrate.codemod.model import Change, Kind
from dsmigrate.codemod.project.index import Index, ModuleFile
from dsmigrate.codemod.project.lazily import Lazily, imports_at_head, lazily
from dsmigrate.files.diff import unified
from dsmigrate.files.discovery import discover
from dsmigrate.files.paths import resolved
from dsmigrate.files.text import decode, encode
from dsmigrate.migration.ideas import LAZILY
from dsmigrate.migration.job import Job, Outcome, read_below, relative
from dsmigrate.migration.sharing import shared_use

_SHOWN = 4


def with_lazy_imports(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes, their modules importing DeepSpeed where they use it if a script outside imports them too."""
    converted = [outcome for outcome in outcomes if outcome.changes]
    return [_lazy(outcome, converted) if outcome.modules and outcome.changes else outcome for outcome in outcomes]


def _lazy(outcome: Outcome, converted: Sequence[Outcome]) -> Outcome:
    root = outcome.job.project
    if root is None or not any(map(_gets_the_import, outcome.modules)):
        return outcome
    done = {path for other in converted for path in other.looked_at}
    project = _Project(outcome.job, root, [other.job.path for other in converted], done)
    return replace(outcome, modules=tuple(_lazy_module(outcome, item, project, done) for item in outcome.modules))


def _lazy_module(outcome: Outcome, module: Outcome, project: _Project, done: set[Path]) -> Outcome:
    way = relative(module.job.path, project.root)
    user = project.user_of(way) if way is not None and _gets_the_import(module) else None
    source = decode(module.result.new_source or b"")
    found = lazily(source.text, source.newline) if user is not None else None
    if user is None or found is None:
        return module
    change = _told(module, found, user, _callers(outcome, module, found, project.root, done))
    before = decode(module.source)
    result = replace(
        module.result,
        changes=tuple(sorted((*module.result.changes, change), key=lambda change: (change.line, change.code))),
        diff=unified(before.text, found.text, module.result.path),
        new_source=encode(found.text, source),
    )
    return replace(module, result=result)


def _gets_the_import(module: Outcome) -> bool:
    new = module.result.new_source
    return new is not None and imports_at_head(decode(new).text) and not imports_at_head(decode(module.source).text)


def _callers(outcome: Outcome, module: Outcome, found: Lazily, root: Path, done: set[Path]) -> list[str]:
    """Scripts outside that use one of the definitions that import DeepSpeed now."""
    known = frozenset(found.names)
    use = shared_use(replace(outcome, alters={resolved(module.job.path): known}), root, done)
    return [] if use is None else [user for user, names in use.users.items() if names]


def _told(module: Outcome, found: Lazily, user: str, callers: list[str]) -> Change:
    message = f"deepspeed is imported inside {', '.join(found.names)}: {user} imports this file too"
    if callers:
        shown = ", ".join(callers[:_SHOWN]) + (" …" if len(callers) > _SHOWN else "")
        message += f". What calls it needs DeepSpeed installed: {shown}"
    reason = "scripts that are not converted go on without DeepSpeed where they do not use it"
    line = next((i for i, text in enumerate(decode(module.source).text.splitlines(), 1) if text.strip()), 1)
    return Change(LAZILY, Kind.KEPT, line, line, message, reason)


class _Project:
    """The imports of a project's files, asked for as they are needed."""

    def __init__(self, job: Job, root: Path, scripts: Sequence[Path], done: set[Path]) -> None:
        self.root = root
        self.job = job
        self.known: dict[str, ModuleFile | None] = {}
        self.direct: dict[str, set[str]] = {}
        self.files = {way: file.path for file in discover([root]) if (way := relative(file.path, root)) is not None}
        self.scripts = {way for path in scripts if (way := relative(path, root)) is not None}
        self.done = self.scripts | {way for path in done if (way := relative(path, root)) is not None}

    @cached_property
    def ours(self) -> set[str]:
        """The files that a converted script runs."""
        return {
            path for way in self.scripts for found in self._index(way).closure() for path in (found, *_packages(found))
        }

    def user_of(self, module: str) -> str | None:
        """A file that imports a module, maybe through others, and that no converted script runs."""
        targets = {module}
        while True:
            words = [word.encode() for word in map(_word, targets)]
            found = {way for way in self.files if way not in targets and self._imports(way, targets, words)}
            for way in sorted(found - self.done):  # the rest of the closure is dear
                if way not in self.ours:
                    return self.files[way].as_posix()
            if not found:
                return None
            targets |= found

    def _imports(self, way: str, targets: set[str], words: list[bytes]) -> bool:
        if way not in self.direct:
            index = self._index(way)
            file = index.file(way)
            if file is None or not any(word in file.source for word in words):
                return False
            found = index.imports_of(way)
            self.direct[way] = {*found, *(above for path in found for above in _packages(path))} - {way}
        return bool(self.direct[way] & targets)

    def _index(self, way: str) -> Index:
        return Index(lambda path: read_below(self.job, self.root, path), way, self.known)


def _word(path: str) -> str:
    """What an import of a file names at least."""
    name = PurePosixPath(path)
    return name.parent.name if name.name == "__init__.py" else name.stem


def _packages(path: str) -> list[str]:
    """The packages that run before a module does."""
    return [(folder / "__init__.py").as_posix() for folder in PurePosixPath(path).parents[:-1]]
