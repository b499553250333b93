"""Other scripts of a project that use a checkpoint as a file, where it becomes a directory: the report names them."""

from __future__ import annotations

import contextlib
import textwrap
import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dsmigrate.codemod.model import Change, Kind
from dsmigrate.files.discovery import discover
from dsmigrate.files.paths import resolved
from dsmigrate.languages import say
from dsmigrate.migration.ideas import USED_AS_FILE
from dsmigrate.migration.importers import users
from dsmigrate.migration.job import Outcome, read_below, relative

if TYPE_CHECKING:
    from dsmigrate.codemod.convert import Use


def with_users(outcome: Outcome) -> Outcome:
    """The outcome with a note for each place outside of the training that uses its checkpoints by name."""
    found = _uses(outcome)
    if not found:
        return outcome
    result = outcome.result
    line = next((note.line for note in result.notes if note.code == "MG636"), 1)
    notes = tuple(
        Change(
            USED_AS_FILE, Kind.KEPT, line, line,
            say(
                "{place} takes a checkpoint for a file: {call}",
                place=f"{one.path}:{one.line}",
                call=textwrap.shorten(one.call, 60, placeholder=" …"),
            ),
            say("it is a directory"),
        )
        for one in found
    )  # fmt: skip
    return replace(outcome, result=replace(result, changes=(*result.changes, *notes), notes=(*result.notes, *notes)))


def _uses(outcome: Outcome) -> list[Use]:
    job, root = outcome.job, outcome.job.project
    if not outcome.directories or root is None:
        return []
    from dsmigrate.codemod.convert import uses  # noqa: PLC0415 - LibCST takes 0.2 s to import
    from dsmigrate.codemod.program.project import Cache  # noqa: PLC0415

    words = [name.encode() for name in outcome.directories]
    files = [(resolved(file.path), relative(file.path, root) or "") for file in discover([root])]
    naming = {path for path, way in files if any(word in (read_below(job, root, way) or b"") for word in words)}
    base, found = resolved(root), dict[tuple[str, int], "Use"]()
    cache = Cache(name=base.name)
    for path in sorted((naming | users(root, naming)) - {resolved(job.path)}):
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")
            entry = relative(path, base) or path.name
            for one in uses(partial(read_below, job, root), entry, outcome.directories, cache):
                if (base / one.place[0], one.place[1]) not in outcome.changed:
                    found[one.path, one.line] = one
    return [found[key] for key in sorted(found)]


__all__ = ["with_users"]
