"""``dsmigrate migrate``: scripts in; a patch, files or JSON out; the report on stderr."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dsmigrate.cli import recover, terminal
from dsmigrate.cli.app import command_like
from dsmigrate.cli.language import speak
from dsmigrate.cli.setting_options import CONVERSION, as_arguments, setting_options
from dsmigrate.files.diff import renamed
from dsmigrate.files.discovery import Found, discover
from dsmigrate.files.journal import JournalError
from dsmigrate.files.paths import resolved
from dsmigrate.files.reading import STDIN, read_stdin
from dsmigrate.files.text import SourceError
from dsmigrate.files.writing import WriteError, write_all
from dsmigrate.migration.configs import to_rename
from dsmigrate.migration.job import Job, Outcome, relative
from dsmigrate.migration.placement import Placed, PlacementError, imports_beside, place, would_replace, writes
from dsmigrate.migration.pool import cores, run_all
from dsmigrate.migration.sets import flattened, project_root, reconcile
from dsmigrate.migration.together import converted_anew
from dsmigrate.report import json as json_report
from dsmigrate.report.view import Entry, Report
from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.fields import SETTINGS
from dsmigrate.settings.options import resolve

STDIN_NAME = "<stdin>"
_Advance = Callable[[Outcome], None]


def _nobody(_: Outcome) -> None:
    return None


@click.command("migrate", short_help="Convert DDP training scripts to the DeepSpeed engine.")
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR|-...")
@click.option("--write", "in_place", is_flag=True, help="Rewrite the scripts, write the config beside each.")
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Write results to DIR.")
@click.option("--force", is_flag=True, help="Replace a differing config (or file in --output) that is already there.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Processes for many files; default: one per core.")
@click.option("--no-follow", is_flag=True, help="Take each script alone; do not look into the modules it imports.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Follow imports within DIR; default: the folder above the script with .git or pyproject.toml.",
)
@click.option("--quiet", "-q", is_flag=True, help="No report and no progress on stderr, only errors.")
@click.option("--verbose", "-v", is_flag=True, help="Report what was converted and kept, too.")
@click.option("--lang", metavar="TAG", help="Language of the report: en or zh-CN.")
@setting_options(SETTINGS)
def command(  # noqa: PLR0917 - click passes by name
    paths: tuple[str, ...],
    in_place: bool,  # noqa: FBT001
    output: Path | None,
    force: bool,  # noqa: FBT001
    form: str,
    jobs: int | None,
    no_follow: bool,  # noqa: FBT001
    root: Path | None,
    quiet: bool,  # noqa: FBT001
    verbose: bool,  # noqa: FBT001
    lang: str | None,
    **flags: Any,  # noqa: ANN401 - the settings, each checked against its definition
) -> int:
    """Convert DDP training scripts to the DeepSpeed engine.

    Prints a patch on stdout and a report on stderr, and writes nothing unless told to. `-` reads a script from
    standard input. Directories are searched for *.py files. Modules of the project that a script trains with (its
    engine.py, utils.py, trainer.py) are converted together with it, all or none. The settings below may also stand in
    pyproject.toml under [tool.dsmigrate] or in dsmigrate.toml; flags override them.
    """
    if in_place and output is not None:
        raise click.UsageError("--write rewrites the scripts, --output leaves them alone: give one of the two")
    if STDIN in paths and (in_place or output is not None):
        raise click.UsageError("what comes from standard input has no file to write to: leave out --write and --output")
    given = {name.replace("_", "-"): value for name, value in flags.items() if value is not None}
    try:
        speak(lang)
        if STDIN not in paths:
            recover.before(paths, writing=in_place)
        work = [_following(job, root) if not no_follow else job for job in _jobs(paths, given)]
        outcomes = _migrate(work, jobs or cores(), quiet=quiet or form == "json")
        placed = _named_from_root(place(outcomes, output))
        writing = writes(placed, force=force, in_place=in_place) if in_place or output is not None else []
    except (SettingsError, PlacementError, JournalError) as error:
        raise click.UsageError(str(error)) from None
    problem = _write(writing)
    written = () if problem else tuple(write.path.as_posix() for write in writing)
    goes_over = output is not None and any(map(_has_modules, placed))
    replaced = would_replace(placed) if written and output is not None else ()
    report = Report(
        tuple(map(_entry, placed)),
        written,
        _write_command(paths, given | ({} if lang is None else {"lang": lang}), output),
        goes_over,
        replaced,
        None if no_follow or root is not None else _verify_command(placed, given),
    )
    _print(report, placed, form=form, patch=not (in_place or output is not None), quiet=quiet, verbose=verbose)
    if problem:
        terminal.tell(f"Error: {problem}. Nothing was written")
    return 2 if problem else report.exit_code


def _jobs(paths: Sequence[str], flags: dict[str, Any]) -> Iterator[Job]:
    if STDIN in paths:
        if len(paths) > 1:
            raise click.UsageError("standard input (-) is a script of its own: give it alone")
        try:
            source = read_stdin()
        except SourceError as error:
            raise click.UsageError(f"standard input: {error.message}") from None
        yield Job(Path(STDIN_NAME), Path(), resolve(Path(), flags).options, source)
        return
    for path in map(Path, paths):
        if not path.exists() and not path.is_symlink():
            raise click.UsageError(f"{path}: no such file or directory{command_like(str(path))}")
    found = discover(map(Path, paths))
    if not found:
        raise click.UsageError(f"no Python files in {', '.join(paths)}")
    for file in found:
        yield _job(file, flags)


def _job(file: Found, flags: dict[str, Any]) -> Job:
    return Job(file.path, file.root, resolve(file.path.parent, flags).options)


def _migrate(jobs: Sequence[Job], processes: int, *, quiet: bool) -> list[Outcome]:
    with _progress(len(jobs), quiet=quiet) as advance:
        outcomes = run_all(jobs, processes, advance)
        renamed = to_rename(outcomes)
        anew = converted_anew(outcomes)
        for index in anew & renamed.keys():
            outcomes[index] = replace(outcomes[index], job=replace(outcomes[index].job, options=renamed[index]))
        left = {index: options for index, options in renamed.items() if index not in anew}
        again = run_all([replace(jobs[index], options=options) for index, options in left.items()], processes, _nobody)
        for index, outcome in zip(left, again, strict=True):
            outcomes[index] = outcome
    reconciled = reconcile(outcomes)
    if any(job.options.with_launchers for job in jobs):
        from dsmigrate.launchers.find import with_launchers  # noqa: PLC0415 - only where they are asked for

        reconciled = with_launchers(reconciled)
    return flattened(reconciled)


def _following(job: Job, root: Path | None) -> Job:
    """The job with the folder in which its imports are followed; what comes from standard input has none."""
    if job.source is not None:
        return job
    if root is not None and relative(job.path, root) is None:
        raise click.UsageError(f"--root {root}: {job.path} is not below it")
    return replace(job, project=root if root is not None else project_root(job.path))


@contextlib.contextmanager
def _progress(total: int, *, quiet: bool) -> Iterator[_Advance]:
    if total < 2 or quiet:
        yield lambda _: None
        return
    with terminal.progress(total) as advance:
        yield lambda outcome: advance(outcome.job.name)


def _named_from_root(placed: list[Placed]) -> list[Placed]:
    """The same with diffs from the root of the project where files outside of here change, as git takes no ``..``."""
    climbing = [item for item in placed if item.outcome.result.diff and relative(item.outcome.job.path, Path()) is None]
    base = next((item.outcome.job.root for item in climbing if not item.outcome.job.path.is_absolute()), None)
    if base is None or not all(relative(item.outcome.job.path, base) for item in placed):
        return placed
    found = []
    for item in placed:
        result = item.outcome.result
        diff = renamed(result.diff, relative(item.outcome.job.path, base) or result.path)
        found.append(replace(item, outcome=replace(item.outcome, result=replace(result, diff=diff)), patched_in=base))
    return found


def _entry(placed: Placed) -> Entry:
    result = placed.outcome.result
    is_elsewhere = result.new_source is not None and placed.script != placed.outcome.job.path
    if is_elsewhere and not _has_modules(placed):  # --output: what was written is started
        old, new = shlex.quote(result.path), shlex.quote(placed.script.as_posix())
        result = replace(result, launch=tuple(command.replace(f" {old}", f" {new}", 1) for command in result.launch))
    return Entry(
        result,
        config_path=placed.config.path.as_posix() if placed.config else None,
        config_in_the_way=placed.config_is_in_the_way,
        is_launcher=placed.outcome.is_launcher,
        is_new=placed.outcome.is_new,
        of=placed.outcome.of,
        release=placed.outcome.job.options.target_version,
    )


def _has_modules(placed: Placed) -> bool:
    """Whether a script runs with other files of its project, of which --output gets the changed ones."""
    return len(placed.outcome.looked_at) > 1 or imports_beside(placed.outcome)


def _write_command(paths: Sequence[str], flags: dict[str, Any], output: Path | None) -> str | None:
    if STDIN in paths or output is not None:
        return None
    return shlex.join(["dsmigrate", *map(_argument, paths), *as_arguments(flags), "--write"])


def _verify_command(placed: Sequence[Placed], flags: dict[str, Any]) -> str | None:
    """The command that makes and trains the very conversion of the one script; None where there is no such command."""
    scripts = [item.outcome for item in placed if item.outcome.result.launch and item.outcome.job.source is None]
    trial = scripts[0].result.trial if len(scripts) == 1 else None
    if trial is None:
        return None
    here, folder = resolved(Path(trial.folder)), resolved(Path(trial.folder, trial.script)).parent
    root = here if folder.is_relative_to(here) else folder
    if not all(resolved(item.script).is_relative_to(root) for item in placed if item.outcome.result.new_source):
        return None
    asked = {name: value for name, value in flags.items() if name in CONVERSION}
    if trial.folder and "config" in asked:
        asked["config"] = os.path.relpath(asked["config"], trial.folder)
    words = ["dsmigrate", "verify", _argument(trial.script), *as_arguments(asked)]
    there = f"cd {shlex.quote(trial.folder)} && " if trial.folder else ""
    return there + shlex.join([*words, *(("--", *trial.arguments) if trial.arguments else ())])


def _argument(path: str) -> str:
    return f"./{path}" if path.startswith("-") else path


def _write(writing: Sequence[Any]) -> str:
    try:
        write_all(writing)
    except WriteError as error:
        return str(error)
    return ""


def _print(report: Report, placed: Sequence[Placed], *, form: str, patch: bool, quiet: bool, verbose: bool) -> None:
    if form == "json":
        terminal.write(json_report.render(report))
        return
    if patch:
        terminal.show_patch(list(_patches(placed)))
    if not quiet:
        terminal.show_report(report, verbose=verbose)
    else:
        terminal.show_errors(report)


def _patches(placed: Sequence[Placed]) -> Iterator[bytes]:
    """Yield the diff of each script in the encoding of the script, so that it applies, then that of its config."""
    shown = set()
    for item in placed:
        yield item.outcome.result.diff.encode(item.outcome.encoding, "backslashreplace")
        if item.config is not None and item.config.path not in shown:
            shown.add(item.config.path)
            path = item.config.path
            name = path.as_posix() if item.patched_in is None else relative(path, item.patched_in) or path.as_posix()
            yield item.config.diff(name).encode()
