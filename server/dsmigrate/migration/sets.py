"""Trainings of several files: modules that several scripts share, and scripts that a change would break."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from dsmigrate.codemod.model import Kind
from dsmigrate.files.paths import resolved
from dsmigrate.migration.job import Outcome
from dsmigrate.migration.together import settled

_MARKS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")


def project_root(script: Path) -> Path:
    """The folder within which the local imports of a script are looked for.

    The nearest folder above with version control or packaging files; without one, the folder above the package that
    the script belongs to, which is the script's own folder where that is no package.
    """
    here = resolved(script).parent
    for folder in (here, *here.parents):
        if any((folder / mark).exists() for mark in _MARKS) and folder != Path.home():
            return _as_given(script, folder)
    while (here / "__init__.py").exists() and here.parent != here:
        here = here.parent
    return _as_given(script, here)


def _as_given(script: Path, folder: Path) -> Path:
    """The folder as the person would write it: the one above the script, through links too, or from where they are."""
    above = next((parent for parent in script.parents if resolved(parent) == folder), None)
    if above is not None:
        return above
    return folder if script.is_absolute() else Path(os.path.relpath(folder))


def reconcile(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Settle what several outcomes have to do with each other; the files of a set are changed together or not at all.

    Outcomes of modules that another script's conversion covers are dropped; nothing is said of one that a converted
    script runs as it is. Scripts that share modules are converted
    together; what other scripts of the project run of these stands under a test for the engine. Sets that would break a
    script outside of them are refused.
    """
    found = settled(outcomes)
    covered = {resolved(module.job.path) for outcome in found for module in outcome.modules}
    run = {path for outcome in found if outcome.changes for path in outcome.looked_at}
    return [
        outcome if outcome.changes or resolved(outcome.job.path) not in run else _unspoken(outcome)
        for outcome in found
        if outcome.changes or resolved(outcome.job.path) not in covered
    ]


def _unspoken(outcome: Outcome) -> Outcome:
    said = tuple(change for change in outcome.result.changes if change.kind is not Kind.KEPT)
    return replace(outcome, result=replace(outcome.result, changes=said))


def flattened(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Every file once: scripts, each followed by its modules; the report of a shared module stands with the first."""
    seen: set[Path] = set()
    found = []
    for outcome in outcomes:
        for item in (outcome, *outcome.modules):
            path = resolved(item.job.path)
            if path not in seen or item is outcome:
                if path not in seen:
                    found.append(item if item is outcome else replace(item, of=outcome.job.name))
                seen.add(path)
    return found
