"""The report for people: what was converted, kept, marked and refused, what differs, and what to run next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from dsmigrate.codemod.model import Change, Kind, Status
from dsmigrate.report.view import Entry, Report

if TYPE_CHECKING:
    from rich.console import Console

GROUPS = (
    (Kind.REFUSED, "Refused", "red"),
    (Kind.TODO, "Left for you, marked # TODO(dsmigrate) in the script", "yellow"),
    (Kind.CONVERTED, "Converted", "green"),
    (Kind.KEPT, "Kept as it is", "cyan"),
)
_STATUS = {
    Status.CONVERTED: ("converted", "bold green"),
    Status.CONVERTED_WITH_TODOS: ("converted, with work left for you", "bold yellow"),
    Status.UNCHANGED: ("unchanged", "dim"),
    Status.REFUSED: ("refused, left as it is", "bold red"),
    Status.ERROR: ("not readable as a training script", "bold red"),
}


def show(report: Report, console: Console) -> None:
    """Print the report; lines are never wrapped, so that ``file:line`` stays clickable and greppable."""
    for line in lines(report):
        console.print(line, soft_wrap=True, highlight=False)


def lines(report: Report) -> Iterator[Text]:
    """Yield the report line by line.

    Files without a decision are only counted where several were given.
    """
    alone = sum(not entry.is_launcher for entry in report.entries) == 1
    for entry in report.entries:
        if alone or entry.result.changes or entry.result.notes:
            yield from _file(entry)
            if entry.result.launch and not alone:
                yield Text.assemble(("  Launch  ", "bold"), entry.result.launch[0], _to_fill_in(entry))
            yield Text()
    if not alone:
        yield _totals(report)
    yield from _next_steps(report)
    if alone and report.entries[0].result.launch:
        yield Text(f"Then train{_to_fill_in(report.entries[0])}:", style="bold")
        yield from (Text(f"    {command}") for command in report.entries[0].result.launch)


def _file(entry: Entry) -> Iterator[Text]:
    result = entry.result
    status, style = _STATUS[result.status]
    yield Text.assemble((result.path, "bold"), ": ", (status, style))
    if result.status is Status.UNCHANGED and not result.changes:
        yield Text("  nothing of DistributedDataParallel to convert in it")
    for kind, title, colour in GROUPS:
        changes = [change for change in result.changes if change.kind is kind and change not in result.notes]
        said = "Left for you" if entry.is_launcher and kind is Kind.TODO else title
        yield from _group(said, colour, result.path, changes)
    yield from _group("Behaves differently under DeepSpeed", "magenta", result.path, result.notes)


def _group(title: str, colour: str, path: str, changes: Sequence[Change]) -> Iterator[Text]:
    if not changes:
        return
    yield Text(f"  {title}", style=f"bold {colour}")
    places = [f"{path}:{change.line}" for change in changes]
    width = max(map(len, places))
    for place, change in sorted(zip(places, changes, strict=True), key=lambda pair: pair[1].line):
        line = Text.assemble("    ", place.ljust(width), "  ", (change.code, colour), "  ", _one_line(change.message))
        if change.reason:
            line.append(f"  ({_one_line(change.reason)})", style="dim")
        yield line


def _totals(report: Report) -> Text:
    counts = report.summary()
    parts = [f"{counts['files']} files"]
    parts += [
        f"{counts[f'files_{status.value}']} {status.value.replace('_', ' ')}"
        for status in Status
        if counts[f"files_{status.value}"]
    ]
    return Text(": ".join((parts[0], ", ".join(parts[1:]))) if len(parts) > 1 else parts[0], style="bold")


def _next_steps(report: Report) -> Iterator[Text]:
    if report.written:
        yield from (Text.assemble(("wrote ", "green"), path) for path in report.written)
        if report.goes_over:
            yield Text(
                "Put these files in the place of the originals; modules that stay as they are are not among them."
            )
        yield from (Text(line, "yellow") for line in report.replaced)
        return
    converted = [entry for entry in report.entries if entry.result.new_source is not None]
    for path in sorted({entry.config_path or "" for entry in converted if entry.config_in_the_way}):
        yield Text(f"{path} is there and differs: --force replaces it, --config-name NAME leaves it", "yellow")
    if converted and report.write_command:
        yield Text("Nothing is written yet. Next:", style="bold")
        yield Text(f"    {report.write_command}")


def _to_fill_in(entry: Entry) -> str:
    words = entry.result.placeholders
    return f" (the script does not start without {', '.join(words)}: put your values there)" if words else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
