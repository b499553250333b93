"""What ``dsmigrate diff`` does for git: ranges of commits, the external diff driver, textconv."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from dsmigrate.cli import terminal
from dsmigrate.diff.changed import Entry, Outcome, Status
from dsmigrate.diff.driver import DriverError, drive
from dsmigrate.diff.git import GitError, is_revision
from dsmigrate.diff.job import Compared, Source, Versions
from dsmigrate.diff.ranges import compare_range
from dsmigrate.diff.textconv import normalised
from dsmigrate.diff.three import compare_three
from dsmigrate.files.reading import STDIN, read, read_stdin
from dsmigrate.files.text import SourceError
from dsmigrate.settings.diff import DiffSettings


def ranged(  # noqa: PLR0917 - the command's own
    revisions: str,
    paths: Sequence[str],
    settings: DiffSettings,
    versions: Versions,
    form: str,
    show_all: bool,  # noqa: FBT001
) -> int:
    """Compare every config that a range of commits changes, print it and return the exit code."""
    try:
        outcomes = compare_range(revisions, Path(), settings, versions, paths)
    except GitError as error:
        raise click.UsageError(str(error)) from None
    _print(outcomes, revisions, form, settings.fail_on, show_all=show_all)
    if any(outcome.error for outcome in outcomes):
        return 2
    return 1 if any(outcome.fails(settings.fail_on) for outcome in outcomes) else 0


def pair(sources: tuple[Source, Source], compared: Compared) -> Outcome:
    """Return a comparison of two files as one of a range, for the formats that make no difference."""
    old, new = (Source(_path(source.name), source.data, source.folder) for source in sources)
    return Outcome(Entry(Status.CHANGED, old, new), compared)


def merge(base: Source, sides: tuple[Source, Source], settings: DiffSettings, form: str, *, show_all: bool) -> int:
    """Print the review of a merge; the exit code is 1 for conflicts, and for what only both sides together break."""
    from dsmigrate.diff.formats import merge as formats  # noqa: PLC0415

    if form not in {"text", "json", "markdown"}:
        raise click.UsageError(f"--base gives text, json or markdown, and no {form}")
    merged = compare_three(base, *sides, settings)
    if form == "text":
        terminal.show_lines(formats.lines(merged, show_all=show_all))
    elif form == "json":
        terminal.write(formats.render_json(merged))
    else:
        terminal.write_visible(formats.render_markdown(merged, show_all=show_all))
    return 1 if settings.fail_on != "never" and (merged.conflicts or merged.together) else 0


def drive_git(arguments: Sequence[str], settings: DiffSettings, *, show_all: bool) -> int:
    """Be git's external diff driver; git takes any exit code but 0 as a crash, so that only wrong usage gives one.

    What git sends neither to a terminal nor to a pager is a patch, as of any file: ``git diff > x.patch``.
    """
    from dsmigrate.diff.formats import several  # noqa: PLC0415

    try:
        has_ids = any(found != "." for found in arguments[2:6:3])  # a difftool has none
        is_read = sys.stdout.isatty() or os.environ.get("GIT_PAGER_IN_USE") or not has_ids
        driven = drive(arguments, settings, as_patch=not is_read and "GIT_DIFF_PATH_TOTAL" in os.environ)
    except DriverError as error:
        raise click.UsageError(str(error)) from None
    if driven.outcome is None:
        terminal.write_bytes(driven.text.encode("utf-8", "surrogateescape"))
        return 0
    if os.environ.get("GIT_PAGER_IN_USE") and not os.environ.get("NO_COLOR"):
        os.environ.setdefault("FORCE_COLOR", "1")  # the pager is a pipe to us, and a terminal to the reader
    terminal.show_lines(several.one(driven.outcome, show_all=show_all))
    return 0


def set_git_up(form: str) -> int:
    """Tell git of the repository around the current folder to use the diff, and print what is done."""
    from dsmigrate.diff.setup import FORMS, set_up  # noqa: PLC0415 - asked for once

    if form not in FORMS:
        raise click.UsageError(f"--git-setup {form!r} does not exist; allowed: {', '.join(FORMS)}")
    try:
        for line in set_up(form, Path()):
            terminal.tell(line, err=False)
    except GitError as error:
        raise click.UsageError(str(error)) from None
    return 0


def convert_text(name: str, version: str | None) -> int:
    """Print a config as git's textconv shows it."""
    try:
        data = read_stdin() if name == STDIN else read(Path(name))
    except SourceError as error:
        raise click.UsageError(f"{name}: {error.message}") from None
    terminal.write_bytes(normalised(data, version))
    return 0


def show(outcome: Outcome, form: str, fail_on: str, *, show_all: bool) -> None:
    """Print one comparison in a format for CI or a browser."""
    _print((outcome,), "", form, fail_on, show_all=show_all)


def _print(outcomes: Sequence[Outcome], revisions: str, form: str, fail_on: str, *, show_all: bool) -> None:
    from dsmigrate.diff.formats import several  # noqa: PLC0415 - of the formats one is used

    if form == "text":
        terminal.show_lines(several.lines(outcomes, show_all=show_all))
        return
    made = _rendered(outcomes, revisions, form, fail_on, show_all=show_all)
    terminal.write(made) if form == "json" else terminal.write_visible(made)


def _rendered(outcomes: Sequence[Outcome], revisions: str, form: str, fail_on: str, *, show_all: bool) -> str:
    from dsmigrate.diff.formats import github, html, junit, markdown, several  # noqa: PLC0415 - of which one is used

    if form == "markdown":
        return markdown.render_all(outcomes, show_all=show_all)
    if form == "github":
        return github.render(outcomes)
    if form == "html":
        return html.render(outcomes)
    if form == "junit":
        return junit.render(outcomes, fail_on)
    return several.render_json(outcomes, revisions)


def _path(name: str) -> str:
    """Return the path in ``REV:path``, and any other name as it is."""
    return name.partition(":")[2].removeprefix("./") if is_revision(name) else name
