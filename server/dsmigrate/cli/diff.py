"""``dsmigrate diff``: what a change of a DeepSpeed config does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dsmigrate.cli import terminal
from dsmigrate.cli.language import speak
from dsmigrate.diff.git import GitError, at_revision, is_revision
from dsmigrate.diff.job import Compared, Source, UnreadableError, Versions, compare
from dsmigrate.files.reading import STDIN, read, read_stdin
from dsmigrate.files.text import SourceError
from dsmigrate.knowledge.versions import order
from dsmigrate.settings.diff import LEVELS, DiffSettings, diff_settings_for, with_diff_setting
from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.releases import check_release

STDIN_NAME = "<stdin>"
_FORMATS = ("text", "json", "markdown", "github", "html", "junit")


@click.command("diff", short_help="Say what a change of a DeepSpeed config does.")
@click.argument("sides", nargs=-1, metavar="OLD [NEW]")
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True)
@click.option("--all", "show_all", is_flag=True, help="List the changes that do nothing as well.")
@click.option("--from-version", metavar="VERSION", help="DeepSpeed release of the old side.")
@click.option("--to-version", metavar="VERSION", help="DeepSpeed release of the new side.")
@click.option("--upgrade", metavar="A..B", help="Both in one; with a single file, what the upgrade does to it.")
@click.option(
    "--deepspeed-version", "--target-version", "deepspeed_version", metavar="VERSION", help="DeepSpeed release of both."
)
@click.option("--transformers-version", metavar="A[..B]", help="Transformers release of both, or of either side.")
@click.option("--accelerate-version", metavar="A[..B]", help="Accelerate release of both, or of either side.")
@click.option("--consumer", metavar="NAME", help="Who reads the config: deepspeed, transformers, accelerate; or auto.")
@click.option("--lang", metavar="TAG", help="Language of messages: en or zh-CN.")
@click.option("--world-size", "--gpus", "world_size", type=int, metavar="N", help="Number of processes, one per GPU.")
@click.option("--parameters", "--params", "parameters", metavar="N", help="Size of the model, such as 7b.")
@click.option("--gpu-memory", type=float, metavar="GIB", help="Memory of one GPU.")
@click.option("--select", metavar="CODES", help="Give these explanations alone: DF4,DF201.")
@click.option("--ignore", metavar="CODES", help="Leave these explanations out.")
@click.option("--base", metavar="FILE", help="Review a merge: what OLD and NEW each do to FILE, and both together.")
@click.option("--git", "revisions", metavar="A...B", help="Every config that these commits change; PATH... limits it.")
@click.option("--git-driver", is_flag=True, help="Be git's external diff driver (diff.deepspeed.command).")
@click.option("--textconv", is_flag=True, help="Print a config normalised, for git's diff.deepspeed.textconv.")
@click.option("--git-setup", metavar="FORM", help="Tell git of this repository: command, textconv or difftool.")
@click.option("--fail-on", metavar="LEVEL", help=f"Least severity for exit code 1: {', '.join(LEVELS)}; default info.")
def command(  # noqa: PLR0917 - click passes by name
    sides: tuple[str, ...],
    form: str,
    show_all: bool,  # noqa: FBT001
    from_version: str | None,
    to_version: str | None,
    upgrade: str | None,
    transformers_version: str | None,
    accelerate_version: str | None,
    base: str | None,
    revisions: str | None,
    git_driver: bool,  # noqa: FBT001
    textconv: bool,  # noqa: FBT001
    git_setup: str | None,
    **flags: Any,  # noqa: ANN401 - the settings, each checked against its definition
) -> int:
    """Say what the change from OLD to NEW does: to numbers, memory, communication, speed, checkpoints, or nothing.

    Both are loaded as DeepSpeed would, so that defaults, other spellings, number formats and the order of keys make no
    difference; `-` reads one side from standard input, REV:path one from git, --git A...B all configs that commits
    change. With one file and two releases (--upgrade 0.16..0.19.8) it says what the upgrade does. Exit codes: 0 nothing
    that reaches --fail-on, 1 something does, 2 it could not be done.
    """
    given = {name.replace("_", "-"): value for name, value in flags.items() if value is not None}
    try:
        speak(given.pop("lang", None))
        versions = replace(
            _versions(from_version, to_version, upgrade),
            frameworks=(
                *_framework("transformers", transformers_version),
                *_framework("accelerate", accelerate_version),
            ),
        )
        if git_setup is not None:
            from dsmigrate.cli import diff_git  # noqa: PLC0415 - what only git asks for

            return diff_git.set_git_up(git_setup)
        if git_driver or revisions is not None or textconv:
            from dsmigrate.cli import diff_git  # noqa: PLC0415 - what only git asks for

            settings = _settings(Path(), given)
            if git_driver:
                return diff_git.drive_git(sides, settings, show_all=show_all)
            if revisions is not None:
                return diff_git.ranged(revisions, sides, settings, versions, form, show_all)
            return diff_git.convert_text(_one(sides), settings.check.version)
        old, new = _two(sides)
        if new is None and versions == Versions():
            raise click.UsageError("one file is compared with itself across two releases: give NEW, or --upgrade A..B")
        sources = _sources(old, new)
        if base is not None:
            from dsmigrate.cli import diff_git  # noqa: PLC0415 - what merges ask for

            if new is None:
                raise click.UsageError("--base FILE takes both sides of the merge: OURS and THEIRS")
            settings = _settings(sources[1].folder or Path(), given)
            return diff_git.merge(_source(base), sources, settings, form, show_all=show_all)
        settings = _settings(sources[1].folder or Path(), given)
        compared = compare(*sources, settings, versions)
    except (SettingsError, UnreadableError) as error:
        raise click.UsageError(str(error)) from None
    if form in {"text", "json"}:
        _print(compared, form, show_all=show_all)
    else:
        from dsmigrate.cli import diff_git  # noqa: PLC0415 - with the formats that few ask for

        diff_git.show(diff_git.pair(sources, compared), form, settings.fail_on, show_all=show_all)
    return 1 if compared.fails(settings.fail_on) else 0


def _two(sides: Sequence[str]) -> tuple[str, str | None]:
    if not sides or len(sides) > 2:
        raise click.UsageError(f"two configs are compared, and {len(sides)} are given")
    return sides[0], sides[1] if len(sides) > 1 else None


def _one(sides: Sequence[str]) -> str:
    if len(sides) != 1:
        raise click.UsageError(f"--textconv takes one file, and {len(sides)} are given")
    return sides[0]


def _versions(old: str | None, new: str | None, upgrade: str | None) -> Versions:
    if upgrade is not None:
        if old is not None or new is not None:
            raise SettingsError("--upgrade A..B says both releases: leave --from-version and --to-version out")
        first, dots, last = upgrade.partition("..")
        if not dots:
            raise SettingsError(f"--upgrade {upgrade!r} names one release; write two: 0.16..0.19.8")
        old, new = first or None, last or None
    return Versions(
        check_release(old, "--from-version") if old else None, check_release(new, "--to-version") if new else None
    )


def _framework(name: str, given: str | None) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the releases of a package on either side, if they are given."""
    if given is None:
        return
    first, dots, last = given.partition("..")
    releases = first, last if dots else first
    for release in releases:
        try:
            order(release)
        except ValueError:
            raise SettingsError(f"--{name}-version {given!r} is not a release") from None
    yield name, releases


def _sources(old: str, new: str | None) -> tuple[Source, Source]:
    if old == STDIN and new in {STDIN, None}:
        if new == STDIN:
            raise click.UsageError("standard input (-) can be one side only")
        only = _source(old)
        return only, only
    left = _source(old)
    return left, left if new is None else _source(new)


def _source(name: str) -> Source:
    """Return a side; a file that cannot be read ends the command."""
    try:
        if name == STDIN:
            return Source(STDIN_NAME, read_stdin(), Path())
        if is_revision(name):
            return at_revision(name, Path())
        return Source(name, read(Path(name)), Path(name).parent)
    except GitError as error:
        raise UnreadableError(str(error)) from None
    except SourceError as error:
        raise UnreadableError(f"{STDIN_NAME if name == STDIN else name}: {error.message}") from None


def _settings(folder: Path, flags: dict[str, Any]) -> DiffSettings:
    settings = diff_settings_for(folder)
    for name, value in flags.items():
        settings = with_diff_setting(settings, name, value)
    return replace(settings, check=replace(settings.check, before=None))


def _print(compared: Compared, form: str, *, show_all: bool) -> None:
    if form == "json":
        from dsmigrate.diff.formats import json  # noqa: PLC0415

        terminal.write(json.render(compared))
        return
    from dsmigrate.diff.formats import text  # noqa: PLC0415

    terminal.show_lines(text.render(compared, show_all=show_all))
