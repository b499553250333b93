"""The migration of one file from its path, with every failure turned into a result."""

from __future__ import annotations

import contextlib
import os
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from dsmigrate.codemod.model import Change, FileResult, Kind, Options, Status
from dsmigrate.files.paths import resolved
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError, decode
from dsmigrate.migration.ideas import INTERNAL, UNREADABLE


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
    files of it, resolved; ``alters`` the top-level names, by resolved path, that behave differently for their callers.
    ``runs`` are the functions of the project that the script runs, by file and first line (0: the file's own code),
    ``changed`` those that its conversion changes. ``needs``: where ``ds_compat.py`` goes, and the names used of it.
    ``is_launcher``: the file is no script but starts one.
    """

    job: Job
    result: FileResult
    source: bytes = b""
    encoding: str = "utf-8"
    modules: tuple[Outcome, ...] = ()
    looked_at: tuple[Path, ...] = ()
    alters: dict[Path, frozenset[str]] = field(default_factory=dict)
    runs: frozenset[tuple[Path, int]] = frozenset()
    changed: frozenset[tuple[Path, int]] = frozenset()
    needs: tuple[Path, frozenset[str]] | None = None
    of: str = ""
    """The script whose training the file is a part of, where that is known and another one."""
    is_launcher: bool = False
    is_new: bool = False
    """Whether there is no such file yet."""

    @property
    def changes(self) -> bool:
        """Whether a file would be written."""
        return self.result.new_source is not None or any(module.changes for module in self.modules)


def run(job: Job) -> Outcome:
    """Read and migrate one file. Never raises for bad input: the outcome then has ``Status.ERROR`` and says why."""
    source = b""
    try:
        source = read(job.path) if job.source is None else job.source
        encoding = decode(source).encoding
    except SourceError as error:
        return Outcome(job, failure(job, UNREADABLE, error.message, "the file is left as it is", error.line), source)
    try:
        if os.environ.get("DSMIGRATE_SECOND"):
            return _second(job, source, encoding)
        if job.project is not None:
            together = _migrate_set(job, job.project, source, encoding)
            if together is not None:
                return together
        result = _migrate(source, job)
    except Exception as error:  # noqa: BLE001 - the promise is a message, never a traceback
        where = traceback.extract_tb(error.__traceback__)[-1]
        message = f"dsmigrate failed on this file: {type(error).__name__}: {str(error)[:200]}"
        reason = f"an error of dsmigrate, at {Path(where.filename).name}:{where.lineno}; the file is left as it is"
        result = failure(job, INTERNAL, message, reason)
    return Outcome(job, result, source, encoding)


def failure(job: Job, code: str, message: str, reason: str, line: int = 1) -> FileResult:
    """Return the result of a file that could not be worked on."""
    change = Change(code, Kind.REFUSED, line, line, message, reason)
    return FileResult(job.name, Status.ERROR, (change,))


def _migrate_set(job: Job, root: Path, source: bytes, encoding: str) -> Outcome | None:
    """Migrate a script together with the modules it reaches; None where the training is in the script alone."""
    from dsmigrate.codemod.across import migrate_set  # noqa: PLC0415 - as above

    entry = relative(job.path, root)
    if entry is None:
        return None

    def read_file(path: str) -> bytes | None:
        return source if path == entry else read_below(job, root, path)

    def shown(path: str) -> str:
        return job.name if path == entry else (root / path).as_posix()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = migrate_set(read_file, entry, shown=shown, options=job.options)
    if found is None:
        return None
    modules = []
    for path, result in found.modules.items():
        text = read_below(job, root, path) or b""
        modules.append(Outcome(Job(root / path, root, job.options, text), result, text, decode(text).encoding))
    inside = all(relative(module.job.path, job.path.parent) for module in modules)
    own = job if inside else replace(job, root=root)
    placed = tuple(replace(module, job=replace(module.job, root=own.root)) for module in modules)
    alters = {resolved(root / path): names for path, names in found.alters.items() if names}
    looked_at = tuple(resolved(root / path) for path in found.looked_at)
    return Outcome(own, found.entry, source, encoding, placed, looked_at, alters)


def _second(job: Job, source: bytes, encoding: str) -> Outcome:
    """The conversion of the codemod's second form, while both are there."""
    del source, encoding
    return run_together([job])[0]


def runs_of(jobs: Sequence[Job]) -> list[frozenset[tuple[Path, int]]]:
    """What some scripts of one project run of its files; nothing of one that cannot be read."""
    from dsmigrate.codemod.convert import places  # noqa: PLC0415 - LibCST takes 0.2 s to import
    from dsmigrate.codemod.program.project import Cache  # noqa: PLC0415

    found = []
    cache = Cache()
    for job in jobs:
        root = job.project if job.project is not None else job.path.parent
        base = resolved(root)
        entry = relative(job.path, root) or job.path.name
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")
            runs = places(partial(read_below, job, root), entry, cache)
            found.append(frozenset((base / path, line) for path, line in runs))
    return found


def run_together(jobs: Sequence[Job], others: frozenset[tuple[Path, int]] = frozenset(), cache: Any = None) -> list[Outcome]:
    """Convert the scripts of one project that share modules; ``others`` is what scripts run that stay as they are."""
    from dsmigrate.codemod.convert import Entry, convert_together  # noqa: PLC0415 - LibCST takes 0.2 s to import

    first = jobs[0]
    root = first.project if first.project is not None else first.path.parent
    sources = {relative(job.path, root) or job.path.name: job for job in jobs}
    base = resolved(root)

    def read_file(path: str) -> bytes | None:
        given = sources.get(path)
        if given is not None:
            return read(given.path) if given.source is None else given.source
        return read_below(first, root, path) if first.project is not None else None

    def shown(path: str) -> str:
        return sources[path].name if path in sources else (root / path).as_posix()

    entries = [Entry(path, job.options) for path, job in sources.items()]
    inside = frozenset((path.relative_to(base).as_posix(), line) for path, line in others if path.is_relative_to(base))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Python thinks of the script's escapes is not what was asked
        found = convert_together(read_file, entries, inside, shown=shown, cache=cache)
    return [_outcome(job, root, conversion, read_file) for job, conversion in zip(jobs, found, strict=True)]


def _outcome(job: Job, root: Path, found: Any, read_file: Callable[[str], bytes | None]) -> Outcome:
    entry = relative(job.path, root) or job.path.name
    source = read_file(entry) or b""
    modules = []
    for path, result in found.results.items():
        if path != entry and (result.changes or result.new_source is not None):
            text = read_file(path) or b""
            modules.append(Outcome(Job(root / path, root, job.options, text), result, text, decode(text).encoding))
    needs = None if found.compat is None else (root / found.compat.path, found.compat.parts)
    files = [*(module.job.path for module in modules), *([needs[0]] if needs else [])]
    inside = all(relative(path, job.path.parent) for path in files)
    own = job if inside else replace(job, root=root)
    base = resolved(root)
    return Outcome(
        own, found.results[entry], source, decode(source).encoding,
        tuple(replace(module, job=replace(module.job, root=own.root)) for module in modules),
        tuple(resolved(root / path) for path in found.looked_at),
        runs=frozenset((base / path, line) for path, line in found.runs),
        changed=frozenset((base / path, line) for path, line in found.changes),
        needs=needs,
    )  # fmt: skip


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


def _migrate(source: bytes, job: Job) -> FileResult:
    from dsmigrate.codemod.migrate import migrate_source  # noqa: PLC0415 - LibCST takes 0.2 s to import

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Python thinks of the script's escapes is not what was asked
        return migrate_source(source, path=job.name, options=job.options, beside=lambda: _texts_beside(job, source))


def _texts_beside(job: Job, source: bytes) -> tuple[str, ...]:
    """The texts of the local files that a script imports; none outside of a project."""
    from dsmigrate.codemod.across import texts_beside  # noqa: PLC0415 - as above

    root = job.project
    entry = relative(job.path, root) if root is not None else None
    if root is None or entry is None:
        return ()
    return texts_beside(lambda path: source if path == entry else read_below(job, root, path), entry)
