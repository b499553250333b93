"""The report for people: what to do, what differs, what is gained, and what to run next; all decisions where asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text

from dsmigrate.codemod.model import Change, Kind, Status
from dsmigrate.languages import mark, say
from dsmigrate.report.gains import gains
from dsmigrate.report.view import Entry, Report

if TYPE_CHECKING:
    from rich.console import Console

_STATUS = {
    Status.CONVERTED: (mark("converted"), "bold green"),
    Status.CONVERTED_WITH_TODOS: (mark("converted, with work left for you"), "bold yellow"),
    Status.UNCHANGED: (mark("unchanged"), "dim"),
    Status.REFUSED: (mark("refused, left as it is"), "bold red"),
    Status.ERROR: (mark("not readable as a training script"), "bold red"),
}


def show(report: Report, console: Console, *, verbose: bool = False) -> None:
    """Print the report; lines are never wrapped, so that ``file:line`` stays clickable and greppable."""
    for line in lines(report, verbose=verbose):
        console.print(line, soft_wrap=True, highlight=False)


def lines(report: Report, *, verbose: bool = False) -> Iterator[Text]:
    """Yield the report line by line; what was converted and kept only where it is ``verbose``.

    The files of one training stand together under its script. Files of which nothing is said are only counted.
    """
    alone = sum(not entry.is_launcher and not entry.of for entry in report.entries) == 1
    for entry in report.entries:
        if entry.of:
            continue
        parts = [entry, *(part for part in report.entries if part.of == entry.result.path)]
        if alone or any(part.result.changes for part in parts):
            yield from _training(parts, verbose=verbose)
            yield Text()
    if not alone:
        yield _totals(report)
    yield from _next_steps(report)


def _training(parts: Sequence[Entry], *, verbose: bool) -> Iterator[Text]:
    entry, result = parts[0], parts[0].result
    left = result.status is Status.CONVERTED and any(one.result.status is Status.CONVERTED_WITH_TODOS for one in parts)
    status, style = _STATUS[Status.CONVERTED_WITH_TODOS if left else result.status]
    config = next((one.result.config for one in parts if one.result.config), None)
    stage = None if config is None else config.get("zero_optimization", {}).get("stage", 0)
    chosen = "" if result.training is None else result.training.stage
    zero = "" if stage is None else f", ZeRO {chosen or stage}"
    yield Text.assemble((result.path, "bold"), ": ", (say(status), style), zero)
    if result.status is Status.UNCHANGED and not result.changes:
        yield Text("  " + say("nothing of DistributedDataParallel to convert in it"))
    told = [(part, one) for part in parts for one in sorted(part.result.changes, key=lambda one: (one.line, one.code))]
    differs = [(part, note) for part in parts for note in part.result.notes if note.kind is not Kind.TODO]
    yield from _group(say("Refused"), "red", [one for one in told if one[1].kind is Kind.REFUSED])
    title = say("Left for you") if entry.is_launcher else say("Left for you, marked # TODO(dsmigrate) in the script")
    yield from _group(title, "yellow", [one for one in told if one[1].kind is Kind.TODO])
    yield from _group(say("Behaves differently under DeepSpeed"), "magenta", differs)
    if verbose:
        yield from _group(
            say("Converted"), "green", [one for one in told if one[1].kind is Kind.CONVERTED and one not in differs]
        )
    if verbose or result.status is Status.UNCHANGED:
        kept = [one for one in told if one[1].kind is Kind.KEPT and one not in differs]
        yield from _group(say("Kept as it is"), "cyan", kept)
    yield from _gains(parts)
    if result.launch:
        words = ", ".join(result.placeholders)
        filled = say(" (put your values for {words})", words=words) if words else ""
        yield Text("  " + say("Train") + filled, style="bold")
        yield from (Text(f"    {command}") for command in result.launch[: None if verbose else 1])


def _group(title: str, colour: str, told: Sequence[tuple[Entry, Change]]) -> Iterator[Text]:
    if not told:
        return
    yield Text(f"  {title}", style=f"bold {colour}")
    found: dict[tuple[str, str, str, str], list[int]] = defaultdict(list)
    for part, change in told:
        found[part.result.path, change.code, _one_line(change.message), _one_line(change.reason)].append(change.line)
    places = [f"{path}:{','.join(map(str, dict.fromkeys(lines)))}" for (path, *_), lines in found.items()]
    width = max(map(len, places))
    for place, (_, code, message, reason) in zip(places, found, strict=True):
        line = Text.assemble("    ", place.ljust(width), "  ", (code, colour), "  ", message)
        if reason:
            line.append(f"  ({reason})", style="dim")
        yield line


def _gains(parts: Sequence[Entry]) -> Iterator[Text]:
    """What the config changes in memory and traffic."""
    training = parts[0].result.training
    config = next((part.result.config for part in parts if part.result.config), None)
    if training is None or config is None:
        return
    found = list(gains(config, training, parts[0].release))
    if found:
        at = say(" at ZeRO {stage}", stage=config.get("zero_optimization", {}).get("stage", 0))
        yield Text("  " + say("Memory and traffic") + (at if training.stage else ""), style="bold")
        yield from (Text(f"    {sentence}") for sentence in found)


def _totals(report: Report) -> Text:
    counts = replace(report, entries=tuple(entry for entry in report.entries if not entry.is_new)).summary()
    parts = [
        f"{counts[f'files_{status.value}']} {say(status.value.replace('_', ' '))}"
        for status in Status
        if counts[f"files_{status.value}"]
    ]
    return Text(": ".join(filter(None, (say("{count} files", count=counts["files"]), ", ".join(parts)))), style="bold")


def _next_steps(report: Report) -> Iterator[Text]:
    if report.written:
        yield from (Text.assemble((say("wrote "), "green"), path) for path in report.written)
        if report.goes_over:
            yield Text(
                say("Put these files in the place of the originals; modules that stay as they are are not among them.")
            )
        yield from (Text(line, "yellow") for line in report.replaced)
        return
    converted = [entry for entry in report.entries if entry.result.new_source is not None]
    for path in sorted({entry.config_path or "" for entry in converted if entry.config_in_the_way}):
        said = say("{path} is there and differs: --force replaces it, --config-name NAME leaves it", path=path)
        yield Text(said, "yellow")
    if converted and report.write_command:
        yield Text(say("Nothing is written yet. Next:"), style="bold")
        yield Text(f"    {report.write_command}")
        if report.verify_command:
            yield Text(f"    {report.verify_command}")


def _one_line(text: str) -> str:
    return " ".join(text.split())
