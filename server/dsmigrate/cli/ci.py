"""``dsmigrate ci``: the logic of the GitHub Action."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from dsmigrate.ci.comment import LIMIT, Api, CommentError
from dsmigrate.ci.event import Event, EventError, read_event, revisions
from dsmigrate.ci.run import Ran, run
from dsmigrate.ci.suggest import suggestions
from dsmigrate.cli import terminal
from dsmigrate.diff.formats import markdown
from dsmigrate.diff.git import GitError
from dsmigrate.settings.check import check_settings_for, with_setting
from dsmigrate.settings.diff import LEVELS, diff_settings_for, with_diff_setting
from dsmigrate.settings.errors import SettingsError
from dsmigrate.visible import visible

_SUMMARY = 1_000_000
"""Characters; GitHub takes a summary of 1 MiB per step."""


@click.group("ci", short_help="Check and compare the configs that a pull request changes.")
def command() -> None:
    """Check and compare the configs that a pull request changes."""


@command.command("github")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--git", "asked", metavar="A...B", help="The commits; default: those of the event.")
@click.option("--fail-on", metavar="LEVEL", help=f"Least severity that fails: {', '.join(LEVELS)}; default breaking.")
@click.option("--comment/--no-comment", default=True, show_default=True, help="Comment on the pull request.")
@click.option("--comment-author", default="github-actions[bot]", show_default=True, help="Whose comment is updated.")
@click.option("--report", type=click.Path(dir_okay=False), help="Write the report to a file as well.")
@click.option("--deepspeed-version", metavar="VERSION", help="DeepSpeed release.")
@click.option("--consumer", metavar="NAME", help="Who reads the configs: deepspeed, transformers, accelerate; or auto.")
@click.option("--world-size", type=int, metavar="N", help="Number of processes.")
@click.option("--parameters", metavar="N", help="Size of the model, such as 7b.")
@click.option("--gpu-memory", type=float, metavar="GIB", help="Memory of one GPU.")
def github(  # noqa: PLR0917 - click passes by name
    paths: tuple[str, ...],
    asked: str | None,
    fail_on: str | None,
    comment: bool,  # noqa: FBT001
    comment_author: str,
    report: str | None,
    **flags: Any,  # noqa: ANN401 - the settings, each checked against its definition
) -> int:
    """Check and compare every config that the event of a GitHub Actions run changes.

    Writes annotations to standard output, the report to the summary of the job, one comment under the pull request,
    which later runs change, and fixes of changed lines as suggestions. The comment needs GITHUB_TOKEN and
    `pull-requests: write`; where the pull request comes from a fork it is left out. Nothing of the repository is
    executed. Exit codes: 0 nothing that reaches --fail-on, 1 something does, 2 it could not be done.
    """
    environment = os.environ
    folder = Path(environment.get("GITHUB_WORKSPACE") or ".")
    try:
        event = read_event(environment) if asked is None or environment.get("GITHUB_EVENT_NAME") else Event("", "")
        ran = _run(asked or revisions(event, folder), folder, paths, flags, fail_on)
    except (EventError, GitError, SettingsError) as error:
        raise click.UsageError(str(error)) from None
    outcome, level = ran
    link = _link(event, environment.get("GITHUB_SERVER_URL", "https://github.com"))
    terminal.write_visible(outcome.annotations())
    text = visible(outcome.report(link=link, limit=_SUMMARY))
    for file in filter(None, (environment.get("GITHUB_STEP_SUMMARY"), report)):
        _append(Path(file), text)
    if environment.get("GITHUB_OUTPUT"):
        _append(Path(environment["GITHUB_OUTPUT"]), _outputs(outcome))
    if comment:
        _comment(event, outcome, link, comment_author)
    return outcome.exit_code(level)


def _run(
    commits: str, folder: Path, paths: tuple[str, ...], flags: dict[str, Any], fail_on: str | None
) -> tuple[Ran, str]:
    """Return what is found, and the level that fails: the flag, else the setting of the project, else breaking."""
    diff, check = diff_settings_for(folder), check_settings_for(folder)
    for name, value in flags.items():
        if value not in {None, ""}:
            diff = with_diff_setting(diff, name.replace("_", "-"), value)
            check = with_setting(check, name.replace("_", "-"), value)
    level = with_diff_setting(diff, "fail-on", fail_on or "breaking").fail_on
    return run(commits, folder, diff, check, paths), level


def _link(event: Event, server: str) -> markdown.Link | None:
    """Return how lines of the new side are linked to, in the repository that the event is about."""
    if not event.head or not event.repository:
        return None
    base = f"{server}/{event.repository}/blob/{event.head}"
    return lambda path, line: f"{base}/{quote(os.fsencode(path))}#L{line}"


def _comment(event: Event, outcome: Ran, link: markdown.Link | None, author: str) -> None:
    """Write the comment where there is a pull request; what stands against it is told, and is no failure."""
    token = os.environ.get("GITHUB_TOKEN")
    if event.number is None:
        return
    if event.fork or not token:
        why = "it comes from a fork, whose runs may only read" if event.fork else "GITHUB_TOKEN is not set"
        terminal.tell(f"no comment on the pull request: {why}; the report is in the summary of the job")
        return
    api = Api(os.environ.get("GITHUB_API_URL", "https://api.github.com"), token, event.repository, author)
    body = visible(outcome.report(link=link, marker=True, limit=LIMIT))
    try:
        posted = api.post(event.number, body, markdown.MARKER, needed=bool(outcome.outcomes))
        terminal.tell(f"comment on the pull request: {posted.value}")
        written = [replace(one, body=visible(one.body)) for one in suggestions(outcome)]
        count = api.suggest(event.number, event.head, written)
    except CommentError as error:
        terminal.tell(f"not written to the pull request: {error}; the report is in the summary of the job")
        return
    if count:
        terminal.tell(f"suggested {count} {'fix' if count == 1 else 'fixes'} at changed lines")


def _outputs(outcome: Ran) -> str:
    worst = [entry.compared.result.worst.value for entry in outcome.outcomes if entry.compared is not None]
    order = ("breaking", "warning", "info", "none")
    return f"configs={len(outcome.outcomes)}\nworst={min(worst, key=order.index, default='none')}\n"


def _append(file: Path, text: str) -> None:
    try:
        with file.open("a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise click.UsageError(f"{file}: cannot be written: {error.strerror}") from None
