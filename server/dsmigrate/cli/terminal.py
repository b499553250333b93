"""What reaches the terminal: results on stdout, talk on stderr, colour and progress only where a person looks."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from click.exceptions import Exit

from dsmigrate.languages import say

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from dsmigrate.checking.formats.text import Line
    from dsmigrate.explain import Overview
    from dsmigrate.report.view import Report

_DIFF_STYLES = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))
_WIDE = 260
"""Columns of what is no terminal: the width of the widest table."""


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
    from rich.text import Text  # noqa: PLC0415 - where there is a terminal

    console = _console()
    for patch in patches:
        for line in patch.decode("utf-8", "replace").splitlines():
            style = next((style for start, style in _DIFF_STYLES if line.startswith(start)), "")
            console.print(Text(line, style), soft_wrap=True)


def show_report(report: Report) -> None:
    """Print the report for people on stderr."""
    from dsmigrate.report import text  # noqa: PLC0415 - only here

    text.show(report, _console(stderr=True))


def show_errors(report: Report) -> None:
    """Print on stderr only what could not be worked on."""
    from rich.text import Text  # noqa: PLC0415 - where there is a report

    from dsmigrate.codemod.model import Status  # noqa: PLC0415

    talk = _console(stderr=True)
    for entry in report.entries:
        if entry.result.status is Status.ERROR:
            for change in entry.result.changes:
                talk.print(
                    Text(f"{entry.result.path}:{change.line}: {change.code} {change.message}", "red"), soft_wrap=True
                )


def show_lines(lines: Iterable[Line]) -> None:
    """Print lines on stdout, never wrapped, so that ``file:line`` stays clickable and greppable."""
    if not _is_coloured():
        text = "".join("".join(piece for piece, _ in line) + "\n" for line in lines)
        write_bytes(text.replace("\n", os.linesep).encode(sys.stdout.encoding or "utf-8", "backslashreplace"))
        return
    from rich.text import Text  # noqa: PLC0415 - where there is a terminal

    console = _console()
    for line in lines:
        console.print(Text.assemble(*line), soft_wrap=True)


def _is_coloured() -> bool:
    """Return whether stdout is a terminal, or to be treated as one (FORCE_COLOR, as rich knows it)."""
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))


def show_codes(found: Overview) -> None:
    """Print one line per code on stdout: those of migrations, of rules, of the diff, and of conversions."""
    rows = [(idea.code, idea.kind.value, idea.title) for idea in found.codes]
    rows += [(rule.code, say(rule.severity.value), say(rule.summary)) for rule in found.rules]
    rows += [(item.code, say("change"), say(item.summary)) for item in found.explanations]
    rows += [(item.code, say("conversion"), say(item.summary)) for item in found.conversions]
    show_lines(((code, "bold"), (f"  {kind:<9}  {title}", "")) for code, kind, title in rows)


def show_markdown(markdown: str) -> None:
    """Print Markdown on stdout, rendered on a terminal and as it is elsewhere."""
    if not sys.stdout.isatty():
        write_bytes(markdown.encode())
        return
    from rich.console import Console  # noqa: PLC0415 - where there is a terminal
    from rich.markdown import Markdown  # noqa: PLC0415

    Console().print(Markdown(markdown))


def show(*found: RenderableType) -> None:
    """Print tables and texts on stdout: as wide as the terminal, or as they need where there is none."""
    from rich.console import Console  # noqa: PLC0415 - where there is something to show

    console = _console()
    if console.is_terminal or os.environ.get("FORCE_COLOR"):
        console.print(*found)
        return
    plain = Console(file=io.StringIO(), width=_WIDE, highlight=False, markup=False, color_system=None)
    plain.print(*found)
    text = "".join(f"{line.rstrip()}\n" for line in plain.file.getvalue().splitlines())  # type: ignore[attr-defined]
    write_bytes(text.replace("\n", os.linesep).encode(sys.stdout.encoding or "utf-8", "backslashreplace"))


@contextlib.contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """Show a progress bar over ``total`` files on stderr if that is a terminal; call what is yielded per file."""
    talk = _console(stderr=True)
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


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console  # noqa: PLC0415 - takes longer than a check

    return Console(stderr=stderr, highlight=False, markup=False)
