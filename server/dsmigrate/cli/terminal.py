"""What reaches the terminal: results on stdout, talk on stderr, colour and progress only where a person looks."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from click.exceptions import Exit
from rich.console import Console
from rich.text import Text

from dsmigrate.codemod.model import Idea, Status
from dsmigrate.report import text
from dsmigrate.report.view import Report
from dsmigrate.rules import Rule

_DIFF_STYLES = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))


def write_bytes(data: bytes) -> None:
    """Write to stdout without any change of newlines or encoding; ends the command when the reader has gone."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        raise Exit(2) from None


def show_patch(patches: Sequence[bytes]) -> None:
    """Print unified diffs, coloured on a terminal and byte for byte elsewhere."""
    if not sys.stdout.isatty():
        write_bytes(b"".join(patches))
        return
    console = Console(highlight=False, markup=False)
    for patch in patches:
        for line in patch.decode("utf-8", "replace").splitlines():
            style = next((style for start, style in _DIFF_STYLES if line.startswith(start)), "")
            console.print(Text(line, style), soft_wrap=True)


def show_report(report: Report) -> None:
    """Print the report for people on stderr."""
    text.show(report, _talk())


def show_errors(report: Report) -> None:
    """Print on stderr only what could not be worked on."""
    talk = _talk()
    for entry in report.entries:
        if entry.result.status is Status.ERROR:
            for change in entry.result.changes:
                talk.print(
                    Text(f"{entry.result.path}:{change.line}: {change.code} {change.message}", "red"), soft_wrap=True
                )


def show_lines(lines: Iterable[Text]) -> None:
    """Print lines on stdout, never wrapped, so that ``file:line`` stays clickable and greppable."""
    console = Console(highlight=False, markup=False)
    for line in lines:
        console.print(line, soft_wrap=True)


def show_codes(ideas: Sequence[Idea], rules: Sequence[Rule] = ()) -> None:
    """Print one line per code on stdout: those of migrations, then those of rules."""
    rows = [(idea.code, idea.kind.value, idea.title) for idea in ideas]
    rows += [(rule.code, rule.severity.value, rule.summary) for rule in rules]
    show_lines(Text.assemble((code, "bold"), f"  {kind:<9}  ", title) for code, kind, title in rows)


def show_markdown(markdown: str) -> None:
    """Print Markdown on stdout, rendered on a terminal and as it is elsewhere."""
    if not sys.stdout.isatty():
        write_bytes(markdown.encode())
        return
    from rich.markdown import Markdown  # noqa: PLC0415 - only here

    Console().print(Markdown(markdown))


@contextlib.contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """Show a progress bar over ``total`` files on stderr if that is a terminal; call what is yielded per file."""
    talk = _talk()
    if not talk.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

    name = TextColumn("{task.fields[name]}", style="dim")
    columns = (TextColumn("migrating"), BarColumn(), MofNCompleteColumn(), name)
    bar = Progress(*columns, console=talk, transient=True)
    task = bar.add_task("", total=total, name="")

    def advance(name: str) -> None:
        bar.start()  # with the first result, after the worker processes have been forked
        bar.update(task, advance=1, name=name)

    try:
        yield advance
    finally:
        bar.stop()


def _talk() -> Console:
    return Console(stderr=True, highlight=False, markup=False)
