"""The launchers of converted scripts, looked for in their projects, as outcomes of the same run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dsmigrate.codemod.model import FileResult, Kind, Start, Status
from dsmigrate.files.diff import unified
from dsmigrate.files.discovery import skipped
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError
from dsmigrate.launchers.convert import Converted, convert
from dsmigrate.launchers.model import Script
from dsmigrate.launchers.regions import kind_of
from dsmigrate.migration.job import Job, Outcome, relative

MOST_FILES = 20_000
"""So many files of a project are looked at by name."""
LARGEST = 1 << 20
"""The largest launcher, in bytes."""
_HIDDEN = frozenset({".github", ".gitlab", ".circleci", ".gitlab-ci.yml"})


def with_launchers(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes and, behind them, one for every launcher that a decision speaks of.

    Takes the outcomes after ``reconcile``; looks at those that asked for launchers and were converted.
    """
    found = list(outcomes)
    by_root: dict[Path, list[int]] = {}
    for index, outcome in enumerate(found):
        if outcome.job.options.with_launchers and outcome.result.start is not None and outcome.job.source is None:
            by_root.setdefault(outcome.job.project or outcome.job.path.parent, []).append(index)
    launchers: list[Outcome] = []
    for root, indexes in by_root.items():
        new = _of_project(root, [found[index] for index in indexes])
        for index in indexes:
            outside = any(item.changes and relative(item.job.path, found[index].job.root) is None for item in new)
            if outside:
                found[index] = _rooted(found[index], root)
        widest = next((found[index].job.root for index in indexes), root)
        launchers += [_rooted(item, widest) for item in new]
    return [*found, *launchers]


def _rooted(outcome: Outcome, root: Path) -> Outcome:
    modules = tuple(replace(module, job=replace(module.job, root=root)) for module in outcome.modules)
    return replace(outcome, job=replace(outcome.job, root=root), modules=modules)


def _of_project(root: Path, outcomes: Sequence[Outcome]) -> list[Outcome]:
    files = list(_walk(root))
    names = [Path(file).name for file in files]
    scripts = []
    for outcome in outcomes:
        way = relative(outcome.job.path, root)
        if way is not None:
            scripts.append(Script(way, outcome.result.start or Start(), names.count(outcome.job.path.name) <= 1))
    words = [script.stem.encode() for script in scripts]
    found = []
    for file in files:
        path = root / file
        source = _read(path, file)
        if source is None or not any(word in source for word in words):
            continue
        encoding = "utf-8" if _is_utf8(source) else "latin-1"
        text = source.decode(encoding)
        kind = kind_of(file, text.partition("\n")[0])
        options = outcomes[0].job.options
        if kind:
            done = convert(text, kind, file, scripts, exists=lambda way: (root / way).is_file(), options=options)
            if done.changes:
                found.append(_outcome(Job(path, root, options, source), text, done, encoding))
    return found


def _outcome(job: Job, text: str, done: Converted, encoding: str) -> Outcome:
    changed = done.text != text
    todo = any(change.kind is Kind.TODO for change in done.changes)
    status = Status.UNCHANGED if not changed else Status.CONVERTED_WITH_TODOS if todo else Status.CONVERTED
    result = FileResult(
        job.name,
        status,
        done.changes,
        unified(text, done.text, job.name),
        done.text.encode(encoding) if changed else None,
    )
    return Outcome(job, result, job.source or b"", encoding, is_launcher=True)


def _walk(root: Path) -> Iterator[str]:
    """The files of a project, from its root, environments, hidden folders and links left out."""
    count = 0
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if name in _HIDDEN or not skipped(here / name))
        for name in sorted(files):
            count += 1
            if count > MOST_FILES:
                return
            if (not name.startswith(".") or name in _HIDDEN) and not (here / name).is_symlink():
                yield (here / name).relative_to(root).as_posix()


def _read(path: Path, name: str) -> bytes | None:
    try:
        return None if "." in Path(name).name and not kind_of(name, "") else read(path, LARGEST)
    except SourceError:
        return None


def _is_utf8(source: bytes) -> bool:
    try:
        source.decode()
    except UnicodeDecodeError:
        return False
    return True
