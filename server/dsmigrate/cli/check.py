"""``dsmigrate check``: what is wrong, ignored, overridden or unwise in DeepSpeed configs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dsmigrate.checking.find import NothingThereError, find
from dsmigrate.checking.formats import json as json_format
from dsmigrate.checking.job import STDIN_NAME, Checked, Mending, at_least, check_bytes, check_file
from dsmigrate.checking.logged import at_least as log_at_least
from dsmigrate.checking.logged import explaining_first
from dsmigrate.cli import recover, terminal
from dsmigrate.cli.language import speak
from dsmigrate.files.journal import JournalError
from dsmigrate.files.reading import STDIN, read_stdin
from dsmigrate.files.text import SourceError
from dsmigrate.files.writing import Write, WriteError, write_all
from dsmigrate.rules import Severity
from dsmigrate.settings.check import CheckSettings, check_settings_for, with_setting
from dsmigrate.settings.errors import SettingsError

if TYPE_CHECKING:  # few checks read a log
    from dsmigrate.messages.logs import Log

_FORMATS = ("text", "json", "sarif", "github")


@click.command("check", short_help="Say what is wrong, ignored, overridden or unwise in DeepSpeed configs.")
@click.argument("paths", nargs=-1, metavar="FILE|DIR|GLOB|-...")
@click.option(
    "--log",
    "log_paths",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Look for known messages in the log of a run as well; may be repeated.",
)
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True)
@click.option("--fix", is_flag=True, help="Apply safe fixes to the files.")
@click.option("--unsafe-fixes", is_flag=True, help="Apply, or with --diff show, the fixes that are a guess as well.")
@click.option("--diff", "show_diff", is_flag=True, help="Print what fixes would change and write nothing.")
@click.option("--select", metavar="CODES", help="Check these rules alone: DS401,DS6.")
@click.option("--ignore", metavar="CODES", help="Leave these rules out.")
@click.option(
    "--deepspeed-version", "--target-version", "deepspeed_version", metavar="VERSION", help="DeepSpeed release."
)
@click.option("--before", metavar="VERSION", help="Release you come from: tells which defaults move.")
@click.option("--consumer", metavar="NAME", help="Who reads the config: deepspeed, transformers, accelerate; or auto.")
@click.option("--lang", metavar="TAG", help="Language of messages: en or zh-CN.")
@click.option("--world-size", type=int, metavar="N", help="Number of processes.")
@click.option("--gpu-memory", type=float, metavar="GIB", help="Memory of one GPU.")
@click.option("--parameters", metavar="N", help="Size of the model, such as 7b.")
@click.option(
    "--arguments", metavar="FLAGS|FILE", help="What the training is started with: '--learning_rate 1e-5', or run.sh."
)
@click.option("--model", metavar="PATH", help="config.json of the model, or a folder; one beside a config is found.")
@click.option("--trainable", metavar="N|PATH", help="What of the model trains: 40m, or an adapter_config.json (LoRA).")
@click.option("--base", metavar="KIND", help="How the rest is kept: 16bit, 8bit, 4bit or 4bit-double.")
@click.option("--hardware", metavar="NAME", help="GPU, such as v100.")
@click.option("--transformers-version", metavar="VERSION", help="Transformers release [the one pinned, or installed].")
@click.option("--accelerate-version", metavar="VERSION", help="Accelerate release [the same].")
@click.option(
    "--min-severity",
    type=click.Choice([severity.value for severity in Severity]),
    help="Least severity to report; by default info, and warning where DeepSpeed rejects the file.",
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever is found.")
@click.option("--statistics", is_flag=True, help="Count findings by code.")
def command(  # noqa: PLR0917 - click passes by name
    paths: tuple[str, ...],
    log_paths: tuple[Path, ...],
    form: str,
    fix: bool,  # noqa: FBT001
    unsafe_fixes: bool,  # noqa: FBT001
    show_diff: bool,  # noqa: FBT001
    min_severity: str | None,
    exit_zero: bool,  # noqa: FBT001
    statistics: bool,  # noqa: FBT001
    **flags: Any,  # noqa: ANN401 - the settings, each checked against its definition
) -> int:
    """Say what is wrong, ignored, overridden or unwise in DeepSpeed configs, and what DeepSpeed does about it.

    Directories are searched for configs, by their keys as well as their names; `-` reads one from standard input.
    Release and reader of a config are taken from what lies around it unless they are given. The settings may also
    stand in pyproject.toml under [tool.dsmigrate.check] or in dsmigrate.toml; flags override them.

    --log finds in a log what DeepSpeed, Transformers, Accelerate, Lightning, torch, NCCL, CUDA and pydantic say when
    something is wrong, tells why and what to do, and which finding in a config explains it.
    """
    if not (paths or log_paths):
        raise click.UsageError("Missing argument 'FILE|DIR|GLOB|-...'.")
    if log_paths and show_diff:
        raise click.UsageError("--diff shows what changes in configs; leave --log out")
    if show_diff and form not in {"text", "json"}:
        raise click.UsageError(f"--diff gives text or json, and no {form}")
    least = None if min_severity is None else Severity(min_severity)
    mending = Mending(wanted=fix or show_diff, unsafe=unsafe_fixes, least=least)
    given = {name.replace("_", "-"): value for name, value in flags.items() if value is not None}
    try:
        speak(given.pop("lang", None))
        if paths and STDIN not in paths:
            recover.before(paths, writing=fix and not show_diff)
        checked = _check(paths, given, mending) if paths else []
    except (SettingsError, NothingThereError, JournalError) as error:
        raise click.UsageError(str(error)) from None
    checked = [_at_least(entry, least) for entry in checked]
    logs = _read_logs(log_paths, least or Severity.INFO)
    checked = explaining_first(checked, logs) if logs else checked
    problem = ""
    if fix and not show_diff:
        problem = _write(checked)
    if show_diff and form == "text":
        terminal.show_patch([entry.diff.encode() for entry in checked if entry.diff])
    elif show_diff:
        terminal.write(json_format.render(checked, diff=True))
    elif not (fix and STDIN in paths):
        _print(checked, logs, form, statistics=statistics)
    if fix and not show_diff and STDIN in paths:
        terminal.write("".join(entry.document.text for entry in checked if entry.document))
    if problem:
        terminal.tell(f"Error: {problem}. Nothing was written")
    return 2 if problem else _exit_code(checked, logs, exit_zero=exit_zero)


def _check(paths: Sequence[str], flags: dict[str, Any], mending: Mending) -> list[Checked]:
    def settings_for(folder: Path) -> CheckSettings:
        settings = check_settings_for(folder)
        for name, value in flags.items():
            settings = with_setting(settings, name, value)
        return replace(settings, scripts=tuple(Path(path) for path in paths if path.endswith(".py")))

    if STDIN in paths:
        if len(paths) > 1:
            raise click.UsageError("standard input (-) is a config of its own: give it alone")
        try:
            data = read_stdin()
        except SourceError as error:
            raise click.UsageError(f"standard input: {error.message}") from None
        return [check_bytes(STDIN_NAME, data, Path(), settings_for(Path()), mending)]
    found = find(paths, settings_for)
    if not found:
        raise click.UsageError(f"no DeepSpeed config in {', '.join(paths)}")
    return [check_file(candidate.path, candidate.settings, mending, document=candidate.document) for candidate in found]


def _read_logs(paths: Sequence[Path], least: Severity) -> list[Log]:
    if not paths:
        return []
    from dsmigrate.messages.logs import read_log  # noqa: PLC0415 - few checks read a log

    return [log_at_least(read_log(path), least) for path in paths]


def _at_least(entry: Checked, least: Severity | None) -> Checked:
    kept = tuple(at_least(entry.findings, least))
    return replace(entry, findings=kept, hidden=len(entry.findings) - len(kept))


def _write(checked: Sequence[Checked]) -> str:
    writes = [
        Write(Path(entry.name), entry.document.text.encode(), entry.original.encode(), Path(entry.name).parent)
        for entry in checked
        if entry.is_changed and entry.document is not None and entry.name != STDIN_NAME
    ]
    try:
        write_all(writes)
    except WriteError as error:
        return str(error)
    return ""


def _print(checked: Sequence[Checked], logs: Sequence[Log], form: str, *, statistics: bool) -> None:
    from dsmigrate.checking.formats import github, sarif, text  # noqa: PLC0415 - each is used alone

    if form == "text":
        terminal.show_lines(text.render(checked, logs=logs, statistics=statistics))
        return
    renderers = {"json": json_format.render, "sarif": sarif.render, "github": github.render}
    made = renderers[form](checked, logs=logs)
    terminal.write_visible(made) if form == "github" else terminal.write(made)


def _exit_code(checked: Sequence[Checked], logs: Sequence[Log], *, exit_zero: bool) -> int:
    if any(entry.error for entry in checked) or any(log.error for log in logs):
        return 2
    found = any(entry.findings for entry in checked) or any(log.seen for log in logs)
    return 1 if found and not exit_zero else 0
