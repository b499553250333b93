"""Scripts that share modules: they are converted together, and scripts that stay as they are keep what they run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dsmigrate import __version__
from dsmigrate.codemod.model import Change, FileResult, Kind, Status
from dsmigrate.files.diff import unified
from dsmigrate.files.paths import resolved
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError, decode
from dsmigrate.migration.ideas import CONFLICT
from dsmigrate.migration.importers import users
from dsmigrate.migration.job import Job, Outcome, run_together, runs_of


def settled(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes of a run as they hold together, each with the files of its project that it needs."""
    found = list(outcomes)
    outside = _outside(found)
    for group in _groups(found):
        changed = frozenset[tuple[Path, int]]().union(*(found[index].changed for index in group))
        staying = [one.runs for index, one in enumerate(found) if index not in group] + outside
        others = frozenset(place for runs in staying for place in runs & changed)
        if len(group) > 1 or others:
            for index, outcome in zip(group, run_together([_job(found[index]) for index in group], others), strict=True):
                found[index] = outcome
    return _with_compat(found)


def _job(outcome: Outcome) -> Job:
    return replace(outcome.job, source=outcome.source)


def _groups(outcomes: Sequence[Outcome]) -> list[list[int]]:
    """The converted scripts of which one changes what another one changes or runs, by index."""
    groups: list[tuple[set[Path], list[int]]] = []
    for index, outcome in enumerate(outcomes):
        if not outcome.changes:
            continue
        files = {path for path, _ in outcome.changed}
        near = [group for group in groups if group[0] & files]
        groups = [group for group in groups if group not in near]
        groups.append((files.union(*(group[0] for group in near)), sorted([index, *(one for group in near for one in group[1])])))
    return [group for _, group in groups]


def _outside(outcomes: Sequence[Outcome]) -> list[frozenset[tuple[Path, int]]]:
    """What each other script of the projects runs of their files, for those that may run the modules that change."""
    changed: dict[Path, set[Path]] = defaultdict(set)
    for outcome in outcomes:
        if outcome.job.project is not None:
            own = resolved(outcome.job.path)
            changed[resolved(outcome.job.project)].update(path for path, _ in outcome.changed if path != own)
    given = {resolved(outcome.job.path) for outcome in outcomes}
    found = []
    for root, paths in changed.items():
        model = next(one.job for one in outcomes if one.job.project is not None and resolved(one.job.project) == root)
        others = [replace(model, path=path, source=None) for path in users(root, paths) - given] if paths else []
        found += runs_of(sorted(others, key=lambda job: job.path))
    return found


def _with_compat(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes, the first of those that need a ``ds_compat.py`` with that file among its modules."""
    from dsmigrate.codemod.runtime.assemble import Origin, assemble  # noqa: PLC0415
    from dsmigrate.codemod.runtime.sources import sources  # noqa: PLC0415

    found = list(outcomes)
    needs: dict[Path, list[int]] = defaultdict(list)
    for index, outcome in enumerate(found):
        if outcome.needs is not None and outcome.changes:
            needs[resolved(outcome.needs[0])].append(index)
    for path, indexes in needs.items():
        parts = frozenset[str]().union(*(one.needs[1] for one in (found[index] for index in indexes) if one.needs is not None))
        first = found[indexes[0]]
        assert first.needs is not None
        home = first.needs[0]
        existing = _existing(path)
        text = None if existing is None else decode(existing).text
        made = assemble(parts, sources(), __version__, text)
        if made.origin is Origin.FOREIGN:
            for index in indexes:
                found[index] = _refused(found[index], f"{home.as_posix()} is there and not dsmigrate's: rename it")
            continue
        changed = made.text != text
        result = FileResult(
            home.as_posix(),
            Status.CONVERTED if changed else Status.UNCHANGED,
            (),
            unified(text, made.text, home.as_posix()) if changed else "",
            made.text.encode() if changed else None,
        )
        job = Job(home, first.job.root, first.job.options, existing or b"")
        module = Outcome(job, result, existing or b"", is_new=existing is None)
        found[indexes[0]] = replace(first, modules=(*first.modules, module))
    return found


def _existing(path: Path) -> bytes | None:
    try:
        return read(path) if path.exists() else None
    except SourceError:
        return None


def _refused(outcome: Outcome, message: str) -> Outcome:
    change = Change(CONFLICT, Kind.REFUSED, 1, 1, message, "the converted script needs a file of that name")
    return replace(outcome, result=FileResult(outcome.result.path, Status.REFUSED, (change,)), modules=(), needs=None)


__all__ = ["settled"]
