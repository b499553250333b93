"""Trainings of several files: modules that several scripts share, and scripts that a change would break."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from dsmigrate.codemod.model import Change, FileResult, Kind, Status
from dsmigrate.codemod.project.twins import NoTwinError
from dsmigrate.files.paths import resolved
from dsmigrate.migration.ideas import CONFLICT
from dsmigrate.migration.job import Outcome
from dsmigrate.migration.lazy_import import with_lazy_imports
from dsmigrate.migration.sharing import SharedUse, shared_use, with_both_forms

_MARKS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")
_SHOWN = 4


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

    Outcomes of modules that another script's conversion covers are dropped. What scripts outside of a set use of its
    modules stays for them as it is, beside a form for the engine. Sets that want one file in different forms, and sets
    that would break a script outside of them, are refused.
    """
    found = list(outcomes)
    if os.environ.get("DSMIGRATE_SECOND"):
        from dsmigrate.migration.together import settled  # noqa: PLC0415 - while both forms are there

        found = settled(found)
        covered = {resolved(module.job.path) for outcome in found for module in outcome.modules}
        return [outcome for outcome in found if outcome.changes or resolved(outcome.job.path) not in covered]
    while True:
        clashing = _clashes(found)
        for index, message in clashing.items():
            found[index] = _refused(found[index], message)
        broken = {} if clashing else _broken(found)
        for index, users in broken.items():
            found[index] = _beside(found[index], users)
        if not clashing and not broken:
            break
    found = with_lazy_imports(found)
    covered = {resolved(module.job.path) for outcome in found for module in outcome.modules}
    return [outcome for outcome in found if outcome.changes or resolved(outcome.job.path) not in covered]


def flattened(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Every file once: scripts, each followed by its modules; the report of a shared module stands with the first."""
    seen: set[Path] = set()
    found = []
    for outcome in outcomes:
        for item in (outcome, *outcome.modules):
            path = resolved(item.job.path)
            if path not in seen or item is outcome:
                if path not in seen:
                    found.append(item)
                seen.add(path)
    return found


def _clashes(outcomes: Sequence[Outcome]) -> dict[int, str]:
    """Outcomes, by index, that want a file in another form than some other outcome, with what to say."""
    wanted: dict[Path, list[tuple[int, Outcome]]] = defaultdict(list)
    for index, outcome in enumerate(outcomes):
        for item in (outcome, *outcome.modules):
            if item.result.new_source is not None:
                wanted[resolved(item.job.path)].append((index, item))
    found: dict[int, str] = {}
    for items in wanted.values():
        if len({item.result.new_source for _, item in items}) > 1:
            names = " and ".join(dict.fromkeys(outcomes[index].job.name for index, _ in items))
            for index, item in items:
                found[index] = (
                    f"{item.job.name} would have to change in different ways for {names}: convert one after the other "
                    f"(dsmigrate {outcomes[index].job.name} --write), which leaves the others as they are"
                )
    return found


def _broken(outcomes: Sequence[Outcome]) -> dict[int, SharedUse]:
    """Outcomes, by index, whose modules some other script of the project uses in their old form."""
    converted = {path for outcome in outcomes if outcome.changes for path in outcome.looked_at}
    found = {}
    for index, outcome in enumerate(outcomes):
        root = outcome.job.project
        use = shared_use(outcome, root, converted) if outcome.alters and root is not None else None
        if use is not None:
            found[index] = use
    return found


def _beside(outcome: Outcome, use: SharedUse) -> Outcome:
    """The outcome with both forms of what others use; refused where they cannot stand side by side."""
    try:
        return with_both_forms(outcome, use)
    except NoTwinError as error:
        users = list(use.users)
        names = sorted({name for _, name in use.shared})
        verb = "use" if len(users) > 1 else "uses"
        shown = ", ".join(users[:_SHOWN]) + (" …" if len(users) > _SHOWN else "")
        command = f"dsmigrate {outcome.job.name} {' '.join(users[:_SHOWN])}"
        return _refused(
            outcome,
            f"{', '.join(names)} would change, and {shown} {verb} the present form, which cannot stay beside the new "
            f"one ({error}): convert all in one run ({command})",
        )


def _refused(outcome: Outcome, message: str) -> Outcome:
    reason = "a module that several scripts use is changed only if all of them keep working"
    change = Change(CONFLICT, Kind.REFUSED, 1, 1, message, reason)
    result = FileResult(outcome.result.path, Status.REFUSED, (change,))
    return replace(outcome, result=result, modules=(), alters={})
