"""Scripts that share modules: they are converted together, and scripts that stay as they are keep what they run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsmigrate import __version__
from dsmigrate.codemod.model import Change, FileResult, Kind, Status
from dsmigrate.files.diff import unified
from dsmigrate.files.paths import resolved
from dsmigrate.files.reading import read
from dsmigrate.files.text import SourceError, decode
from dsmigrate.languages import say
from dsmigrate.migration.configs import with_config
from dsmigrate.migration.directories import with_users
from dsmigrate.migration.ideas import CONFLICT
from dsmigrate.migration.importers import users
from dsmigrate.migration.job import Job, Outcome, Place, files_of_projects, run_together, runs_of

if TYPE_CHECKING:
    from dsmigrate.codemod.program.project import Cache


def converted_anew(outcomes: Sequence[Outcome]) -> set[int]:
    """The outcomes, by index, that ``settled`` converts once more, as they share modules."""
    return {index for group in _groups(outcomes) if len(group) > 1 for index in group}


def settled(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes of a run as they hold together, each with the files of its project that it needs."""
    found = list(outcomes)
    caches: dict[Path | None, Cache] = defaultdict(files_of_projects())
    outside = _outside(found, caches)
    groups = _groups(found)
    while groups:
        group = groups.pop(0)
        altered = frozenset[Place]().union(*(found[index].altered for index in group))
        makers = frozenset[Place]().union(*(found[index].makers for index in group))
        staying = [(one.job.path.name, one.runs) for index, one in enumerate(found) if index not in group]
        staying += [(name, runs) for name, runs in outside if not runs & makers]  # else they train with the engine
        others = {
            place: ", ".join(sorted({name for name, runs in staying if place in runs}))
            for place in altered.intersection(frozenset().union(*(runs for _, runs in staying)))
        }
        if len(group) > 1 or others:
            jobs = [found[index].job for index in group]
            for index, outcome in zip(group, run_together(jobs, others, caches[jobs[0].project]), strict=True):
                found[index] = outcome
        odd = _with_different_configs([found[index] for index in group])
        refused = {index: one for index, one in zip(group, odd, strict=True) if one is not None}
        for index, one in refused.items():
            found[index] = one
        if refused:
            groups.insert(0, [index for index in group if index not in refused])
    return _with_compat([with_users(outcome) for outcome in found])


def _with_different_configs(outcomes: Sequence[Outcome]) -> list[Outcome | None]:
    """A refusal for each script whose engine is made where another one's is, with another config; else None."""
    made: dict[Path, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if (maker := with_config(outcome)) is not None:
            made[resolved(maker.job.path)].append(outcome)
    found: list[Outcome | None] = []
    for outcome in outcomes:
        maker = with_config(outcome)
        makers = [] if maker is None else made[resolved(maker.job.path)]
        configs = [_in_file(one) for one in map(with_config, makers) if one is not None]
        if maker is None or all(config == configs[0] for config in configs):
            found.append(None)
            continue
        names = " and ".join(Path(one.job.name).name for one in makers)
        message = say(
            "{file} makes the engine of {names}, which need different configs",
            file=Path(maker.job.name).name,
            names=names,
        )
        found.append(
            _refused(outcome, message, say("a file takes its config from one place: make the engine in the scripts"))
        )
    return found


def _in_file(maker: Outcome) -> dict[str, Any]:
    """The config of an engine, without what the script sets when it runs."""
    _, _, call = (maker.result.new_source or maker.source).partition(b"load_config(")
    return {key: value for key, value in (maker.result.config or {}).items() if f"{key}=".encode() not in call}


def _groups(outcomes: Sequence[Outcome]) -> list[list[int]]:
    """The converted scripts of which one changes what another one changes or runs, by index."""
    groups: list[tuple[set[Path], list[int]]] = []
    for index, outcome in enumerate(outcomes):
        if not outcome.changes:
            continue
        files = {path for path, _ in outcome.changed}
        near = [group for group in groups if group[0] & files]
        groups = [group for group in groups if group not in near]
        members = [index, *(one for group in near for one in group[1])]
        groups.append((files.union(*(group[0] for group in near)), sorted(members)))
    return [group for _, group in groups]


def _outside(outcomes: Sequence[Outcome], caches: Mapping[Path | None, Cache]) -> list[tuple[str, frozenset[Place]]]:
    """What each other script of the projects runs of their files, for those that may run the modules that change."""
    changed: dict[Path, set[Path]] = defaultdict(set)
    for outcome in outcomes:
        if outcome.job.project is not None:
            own = resolved(outcome.job.path)
            changed[resolved(outcome.job.project)].update(path for path, _ in outcome.changed if path != own)
    given = {resolved(outcome.job.path) for outcome in outcomes}
    found: list[tuple[str, frozenset[Place]]] = []
    for root, paths in changed.items():
        model = next(one.job for one in outcomes if one.job.project is not None and resolved(one.job.project) == root)
        others = [replace(model, path=path, source=None) for path in users(root, paths) - given] if paths else []
        others.sort(key=lambda job: job.path)
        if len(others) > _MOST_READ:
            every = frozenset[Place]().union(*(one.changed - one.makers for one in outcomes))
            found.append((others[0].path.name, frozenset(place for place in every if place[0] in paths)))
        elif others:
            found += zip([job.path.name for job in others], runs_of(others, caches[model.project]), strict=True)
    return found


_MOST_READ = 8
"""Other scripts of a project that are read for what they run; more than these are taken to run all that changes."""


def _with_compat(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes, the first of those that need a ``ds_compat.py`` with that file among its modules."""
    from dsmigrate.codemod.runtime.assemble import Origin, assemble  # noqa: PLC0415
    from dsmigrate.codemod.runtime.sources import sources  # noqa: PLC0415

    found = list(outcomes)
    needs: dict[Path, list[tuple[int, Path, frozenset[str]]]] = defaultdict(list)
    for index, outcome in enumerate(found):
        if outcome.needs is not None and outcome.changes:
            needs[resolved(outcome.needs[0])].append((index, *outcome.needs))
    for path, needing in needs.items():
        parts = frozenset[str]().union(*(one for _, _, one in needing))
        indexes = [index for index, _, _ in needing]
        first, home = found[indexes[0]], needing[0][1]
        existing = _existing(path, first.job)
        text = None if existing is None else decode(existing).text
        made = assemble(parts, sources(), __version__, text)
        if made.origin is Origin.FOREIGN:
            for index in indexes:
                message = say("{path} is there and not dsmigrate's: rename it", path=home.as_posix())
                found[index] = _refused(found[index], message, say("the converted script needs a file of that name"))
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


def _existing(path: Path, job: Job) -> bytes | None:
    if path in job.unsaved:
        return job.unsaved[path]
    try:
        return read(path) if path.exists() else None
    except SourceError:
        return None


def _refused(outcome: Outcome, message: str, reason: str) -> Outcome:
    change = Change(CONFLICT, Kind.REFUSED, 1, 1, message, reason)
    result = FileResult(outcome.result.path, Status.REFUSED, (change,))
    return replace(outcome, result=result, modules=(), changed=frozenset(), needs=None)


__all__ = ["converted_anew", "settled"]
