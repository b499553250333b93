"""The migration of one file from its path, with every failure turned into a result."""

from __future__ import annotations

import ast
import contextlib
import gc
import os
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from dsmigrate.codemod.model import Change, FileResult, Kind, Options, Status
from dsmigrate.codemod.program.module import Parsed
from dsmigrate.files import syntax
from dsmigrate.files.paths import resolved
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError, decode
from dsmigrate.languages import say
from dsmigrate.migration.ideas import INTERNAL, UNREADABLE

if TYPE_CHECKING:
    from dsmigrate.codemod.convert import Conversion
    from dsmigrate.codemod.program.project import Cache

Place: TypeAlias = tuple[Path, int]
"""A function of a project, by its file and its first line; line 0 is the file's own code."""


@dataclass(frozen=True, slots=True)
class Job:
    """One file to migrate. ``source`` holds its bytes where they were read already (standard input).

    ``project`` is the folder within which local imports are followed; None where the file is taken alone. ``unsaved``
    has the bytes, by resolved path, of files that an editor shows otherwise than they lie on the disk.
    """

    path: Path
    root: Path
    options: Options
    source: bytes | None = None
    project: Path | None = None
    unsaved: Mapping[Path, bytes] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The path as reports and diffs show it."""
        return self.path.as_posix()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a job gave: the codemod's result, the bytes it was made from, and the encoding those are in.

    ``modules`` are the other files of the same training, changed together with it or not at all; ``looked_at`` all
    files of it, resolved.
    ``runs`` are the functions of the project that the script runs, by file and first line (0: the file's own code),
    ``changed`` those that its conversion changes, ``altered`` those whose old form others need, ``makers`` those that
    make an engine then. ``needs``: where
    ``ds_compat.py`` goes, and the names used of it.
    ``directories``: the names of checkpoints that become directories.
    ``is_launcher``: the file is no script but starts one.
    """

    job: Job
    result: FileResult
    source: bytes = b""
    encoding: str = "utf-8"
    modules: tuple[Outcome, ...] = ()
    looked_at: tuple[Path, ...] = ()
    runs: frozenset[Place] = frozenset()
    changed: frozenset[Place] = frozenset()
    altered: frozenset[Place] = frozenset()
    makers: frozenset[Place] = frozenset()
    needs: tuple[Path, frozenset[str]] | None = None
    directories: frozenset[str] = frozenset()
    of: str = ""
    """The script whose training the file is a part of, where that is known and another one."""
    is_launcher: bool = False
    is_new: bool = False
    """Whether there is no such file yet."""

    @property
    def changes(self) -> bool:
        """Whether a file would be written."""
        return self.result.new_source is not None or any(module.changes for module in self.modules)


def run(job: Job, cache: Cache | None = None) -> Outcome:
    """Read and migrate one file. Never raises for bad input: the outcome then has ``Status.ERROR`` and says why."""
    return run_together([job], cache=cache)[0]


def run_together(
    jobs: Sequence[Job], others: Mapping[Place, str] = MappingProxyType({}), cache: Cache | None = None
) -> list[Outcome]:
    """Convert scripts of one project together, so that modules that they share suit all of them.

    ``others`` is what scripts run of these modules that stay as they are, with their names; ``cache`` the files of the
    project that were read already. Never raises for bad input, as ``run``.
    """
    as_read = [_read(job) for job in jobs]
    left = [(one, parsed) for one, parsed in as_read if parsed is not None]
    try:
        with warnings.catch_warnings(), _without_collections():
            warnings.simplefilter("ignore")  # what Python thinks of the script's escapes is not what was asked
            found = iter(syntax.with_deep_stack(lambda: _converted(left, others, cache)) if left else ())
    except Exception as error:  # noqa: BLE001 - the promise is a message, never a traceback
        found = iter([replace(one, result=_failed(one.job, error)) for one, _ in left])
    return [one if parsed is None else next(found) for one, parsed in as_read]


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Look for cycles once, at the end: an analysis holds on to nearly all that it makes."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect(0)


def _read(job: Job) -> tuple[Outcome, Parsed | None]:
    """The file as it is, an error where it cannot be read or is no Python; and its tree if it may train."""
    source = b""
    try:
        source = read(job.path) if job.source is None else job.source
        text = decode(source)
        tree = syntax.parse(text.text)
    except SourceError as error:
        result = failure(job, UNREADABLE, error.message, say("the file is left as it is"), error.line)
        return Outcome(job, result, source), None
    concerns = _concerns(job, source, tree)
    outcome = Outcome(job, FileResult(job.name, Status.UNCHANGED), source, text.encoding)
    return outcome, Parsed(source, text, tree) if concerns else None


_WORDS = re.compile(rb"DistributedDataParallel|DDP|init_process_group|init_distributed|\.backward\(")
_RUNS = ast.If | ast.For | ast.While | ast.With | ast.Try | ast.Expr


def _concerns(job: Job, source: bytes, tree: ast.Module) -> bool:
    """Whether a file may train: it says a word of it, or runs something of its project. Cheaper than to run it."""
    runs = job.project is not None and any(isinstance(one, _RUNS) and not _is_text(one) for one in tree.body)
    return runs or _WORDS.search(source) is not None


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _failed(job: Job, error: Exception) -> FileResult:
    where = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__}: {str(error)[:200]}"
    place = f"{Path(where.filename).name}:{where.lineno}"
    message = say("dsmigrate failed on this file: {error}", error=what)
    reason = say("an error of dsmigrate, at {place}; the file is left as it is", place=place)
    return failure(job, INTERNAL, message, reason)


def files_of_projects() -> Callable[[], Cache]:
    """What makes a memory of the files that were read, one for each project."""
    from dsmigrate.codemod.program.project import Cache  # noqa: PLC0415 - only where there is something to convert

    return Cache


def failure(job: Job, code: str, message: str, reason: str, line: int = 1) -> FileResult:
    """Return the result of a file that could not be worked on."""
    change = Change(code, Kind.REFUSED, line, line, message, reason)
    return FileResult(job.name, Status.ERROR, (change,))


def runs_of(jobs: Sequence[Job], cache: Cache) -> list[frozenset[Place]]:
    """What some scripts of one project run of its files; nothing of one that cannot be read."""
    from dsmigrate.codemod.convert import places  # noqa: PLC0415 - LibCST takes 0.2 s to import

    found: list[frozenset[Place]] = []
    for job in jobs:
        runs: frozenset[tuple[str, int]] = frozenset()
        root = job.project if job.project is not None else job.path.parent
        base = resolved(root)
        cache.name = base.name
        entry = relative(job.path, root) or job.path.name
        with warnings.catch_warnings(), contextlib.suppress(Exception), _without_collections():
            warnings.simplefilter("ignore")
            runs = places(partial(read_below, job, root), entry, cache)
        found.append(frozenset((base / path, line) for path, line in runs))
    return found


def _converted(
    as_read: Sequence[tuple[Outcome, Parsed]], others: Mapping[Place, str], cache: Cache | None
) -> list[Outcome]:
    from dsmigrate.codemod.convert import Entry, convert_together  # noqa: PLC0415 - LibCST takes 0.2 s to import
    from dsmigrate.codemod.program.project import Cache  # noqa: PLC0415

    files = [file for file, _ in as_read]
    first = files[0].job
    root = first.project if first.project is not None else first.path.parent
    base = resolved(root)
    given = {relative(file.job.path, root) or file.job.path.name: file for file in files}

    def read_file(path: str) -> bytes | None:
        if path in given:
            return given[path].source
        return read_below(first, root, path) if first.project is not None else None

    def shown(path: str) -> str:
        return given[path].job.name if path in given else _from_here(root / path).as_posix()

    entries = [Entry(path, file.job.options) for path, file in given.items()]
    inside = {
        (path.relative_to(base).as_posix(), line): names
        for (path, line), names in others.items()
        if path.is_relative_to(base)
    }
    if cache is None or first.project is None:  # each of those is a project of its own
        cache = Cache()
    cache.name = base.name
    cache.trees.update(zip(given, (parsed for _, parsed in as_read), strict=True))
    found = convert_together(read_file, entries, inside, shown=shown, cache=cache)
    return [_outcome(file, root, conversion, read_file) for file, conversion in zip(files, found, strict=True)]


def _from_here(path: Path) -> Path:
    """A path without the way up and down again: ``a.py`` for ``../here/a.py``."""
    return path if path.is_absolute() else Path(os.path.relpath(path))


def _outcome(file: Outcome, root: Path, found: Conversion, read_file: Callable[[str], bytes | None]) -> Outcome:
    job, base = file.job, resolved(root)
    modules = []
    for path, result in found.results.items():
        if path != found.entry and (result.changes or result.new_source is not None):
            text = read_file(path) or b""
            modules.append(
                Outcome(Job(_from_here(root / path), root, job.options, text), result, text, decode(text).encoding)
            )
    needs = None if found.compat is None else (_from_here(root / found.compat.path), found.compat.parts)
    changed = [*(module.job.path for module in modules), *([needs[0]] if needs else [])]
    inside = all(relative(path, job.path.parent) for path in changed)
    own = job if inside else replace(job, root=root)
    return replace(
        file,
        job=own,
        result=found.results[found.entry],
        modules=tuple(replace(module, job=replace(module.job, root=own.root)) for module in modules),
        looked_at=tuple(resolved(root / path) for path in found.looked_at),
        runs=frozenset((base / path, line) for path, line in found.runs),
        changed=frozenset((base / path, line) for path, line in found.changes),
        altered=frozenset((base / path, line) for path, line in found.alters),
        makers=frozenset((base / path, line) for path, line in found.makers if line),
        needs=needs,
        directories=found.directories,
    )


def relative(path: Path, root: Path) -> str | None:
    """The way from a folder down to a path, with ``/``; None where the path is not below the folder."""
    way = Path(os.path.relpath(path, root)).as_posix()
    return None if way.startswith("..") else way


def read_below(job: Job, root: Path, path: str) -> bytes | None:
    """The content of a file below a folder, as a job sees it; None where there is none that can be read."""
    file = root / path
    if job.unsaved and (text := job.unsaved.get(resolved(file))) is not None:
        return text
    if not file.is_file():
        return None
    try:
        return read(file)
    except SourceError:
        return None
