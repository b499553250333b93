"""``dsmigrate recover``: finishes or undoes a --write that was killed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import click

from dsmigrate.cli import terminal
from dsmigrate.files.journal import JournalError, Recovered, all_found, found, interrupted, recover
from dsmigrate.files.paths import resolved
from dsmigrate.languages import mark, say

_WOULD = (mark("would finish {file}"), mark("would undo {file}"))
_DID = (mark("finished {file}"), mark("undid {file}"))


@click.command("recover", short_help="Finish or undo a --write that was killed.")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", metavar="[DIR]")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(folder: Path, form: str, dry_run: bool) -> int:  # noqa: FBT001 - click passes by name
    """Finish or undo what a --write or --fix that was killed has left in DIR, below it or around it.

    A set of files of which all were written is finished; of any other each file gets its former content. Files that
    were edited since stay as they are. Exit codes: 0 nothing is left to do, 1 a file was edited since, 2 it could not
    be done.
    """
    done: list[Recovered] = []
    problems: list[str] = []
    for path in all_found(resolved(folder)):
        try:
            done.append(recover(path, dry_run=dry_run))
        except (JournalError, OSError) as error:
            problems.append(str(error))
    if form == "json":
        document = {"version": 1, "sets": [_as_json(one) for one in done], "errors": problems}
        terminal.write(json.dumps(document, indent=2) + "\n")
    else:
        lines = [line for one in done for line in _lines(one, dry_run=dry_run)]
        lines += [] if done or problems else [say("nothing was interrupted here")]
        terminal.show_lines(((line, ""),) for line in lines)
        for problem in problems:
            terminal.tell(say("Error: {problem}", problem=problem))
    return 2 if problems else int(any(one.left for one in done))


def before(paths: Iterable[str], *, writing: bool) -> None:
    """Say on stderr what an interrupted run has left around some files or folders; before ``writing`` recover it.

    Raises JournalError where that cannot be done.
    """
    folders = {resolved(path if path.is_dir() else path.parent) for path in map(Path, paths)}
    for path in sorted(set(filter(None, map(found, folders)))):
        if not writing:
            terminal.tell(interrupted(path))
            continue
        try:
            for line in _lines(recover(path), dry_run=False):
                terminal.tell(line)
        except OSError as error:
            raise JournalError(f"{path}: {error.strerror or error}") from None


def _lines(one: Recovered, *, dry_run: bool) -> list[str]:
    finished, undone = _WOULD if dry_run else _DID
    lines = [say(finished, file=file) for file in one.finished]
    lines += [say(undone, file=file) for file in one.undone]
    lines += [say("{file} was edited since and stays as it is", file=file) for file in one.left]
    lines += [say("{file} has what was in it before", file=file) for file in one.kept]
    return lines


def _as_json(one: Recovered) -> dict[str, object]:
    groups = {"finished": one.finished, "undone": one.undone, "left": one.left, "kept": one.kept}
    return {"journal": str(one.journal)} | {name: [str(file) for file in files] for name, files in groups.items()}
