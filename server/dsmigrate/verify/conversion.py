"""Converts a script for a verification, with dsmigrate itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dsmigrate.codemod.model import Kind
from dsmigrate.files.paths import resolved
from dsmigrate.files.writing import WriteError, write_all
from dsmigrate.migration.job import Job, Outcome, run
from dsmigrate.migration.placement import PlacementError, place, writes
from dsmigrate.migration.sets import flattened, project_root, reconcile
from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.fields import Value
from dsmigrate.settings.options import resolve
from dsmigrate.verify.model import VerifyError


def convert(script: Path, root: Path, copy: Path, asked: Mapping[str, Value]) -> tuple[str, ...]:
    """Write the conversion of ``script`` over ``copy``, a copy of ``root``; return what it leaves for a person.

    ``asked`` are settings as flags give them; settings files count as they do for a migration. Other scripts that use
    a changed module are no hindrance, as only this one is run here: where the module cannot serve both, they are named
    with what is left. Raises VerifyError, with the reasons, where the script is not converted, or where it trains with
    modules outside of ``root``.
    """
    try:
        options = resolve(script.parent, asked).options
    except SettingsError as error:
        raise VerifyError(str(error)) from None
    outcome = run(Job(script, script.parent, options, project=project_root(script)))
    if not outcome.changes:
        raise VerifyError(_unchanged(script, outcome))
    _check_inside(outcome, root)
    reconciled = [item for item in reconcile([outcome]) if item.changes] or [outcome]
    placed = [replace(item, job=replace(item.job, root=root)) for item in flattened(reconciled)]
    try:
        write_all(writes(place(placed, copy), force=True, in_place=False))
    except (PlacementError, WriteError) as error:
        raise VerifyError(f"the conversion of {script} cannot be written: {error}") from None
    return tuple(_left(outcome))


def _unchanged(script: Path, outcome: Outcome) -> str:
    reasons = [line for item in (outcome, *outcome.modules) for line in _lines(item, Kind.REFUSED)]
    said = "; ".join(reasons) or "nothing of DistributedDataParallel to convert in it"
    return f"{script} is {outcome.result.status.value}, so that there is nothing to verify: {said}"


def _check_inside(outcome: Outcome, root: Path) -> None:
    """Refuse a training whose modules are not copied: the originals would be run in their place."""
    files = [resolved(item.job.path) for item in (outcome, *outcome.modules) if item.changes]
    outside = [path for path in files if not path.is_relative_to(resolved(root))]
    if outside:
        raise VerifyError(
            f"{outcome.job.name} trains with {', '.join(map(str, outside))}, which is not below {root}, the folder "
            f"that is copied: start from {resolved(project_root(outcome.job.path))}"
        )


def _left(outcome: Outcome) -> list[str]:
    todos = [line for item in (outcome, *outcome.modules) for line in _lines(item, Kind.TODO)]
    others = [line for item in reconcile([outcome]) if not item.changes for line in _lines(item, Kind.REFUSED)]
    return [*todos, *others]


def _lines(outcome: Outcome, kind: Kind) -> list[str]:
    return [
        f"{outcome.job.name}:{change.line}: {change.code} {change.message}"
        + (f" ({change.reason})" if kind is Kind.REFUSED and change.reason else "")
        for change in outcome.result.changes
        if change.kind is kind
    ]
