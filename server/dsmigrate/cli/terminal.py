"""What reaches the terminal: results on stdout, talk on stderr, colour and progress only where a person looks."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from click.exceptions import Exit

from dsmigrate.cli import streams
from dsmigrate.languages import say
from dsmigrate.visible import no_command, visible, visible_line

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    from dsmigrate.checking.formats.text import Line
    from dsmigrate.explain import Overview
    from dsmigrate.report.view import Report

_DIFF_STYLES = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))
_WIDE = 260
"""Columns of what is no terminal: the width of the widest table."""


def write(text: str) -> None:
    r"""Write to stdout in UTF-8, without any change of newlines; a lone surrogate is ``\udc80``, as JSON has it."""
    write_bytes(text.encode("utf-8", "backslashreplace"))


def write_visible(text: str) -> None:
    """Write a page or a report for people to stdout, as ``write`` does, with controls as escapes."""
    write(visible(text))


def write_bytes(data: bytes) -> None:
    """Write to stdout without any change of newlines or encoding; ends the command where it takes nothing more."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except OSError as error:
        streams.give_up(sys.stdout, error)
        raise Exit(2) from None


def tell(text: str, *, err: bool = True) -> None:
    """Print a message for people on stderr, or on stdout, with controls as escapes."""
    text = no_command(visible(text))
    stream = sys.stderr if err else sys.stdout
    encoding = stream.encoding or "utf-8"
    stream.write(f"{text}\n".encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


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


def show_report(report: Report, *, verbose: bool = False) -> None:
    """Print the report for people on stderr."""
    from dsmigrate.report import text  # noqa: PLC0415 - only here

    text.show(report, _console(stderr=True), verbose=verbose)


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
        _write_plain("".join("".join(visible_line(piece) for piece, _ in line) + "\n" for line in lines))
        return
    from rich.text import Text  # noqa: PLC0415 - where there is a terminal

    console = _console()
    for line in lines:
        console.print(Text.assemble(*((visible_line(piece), style) for piece, style in line)), soft_wrap=True)


def _write_plain(text: str) -> None:
    text = no_command(visible(text)).replace("\n", os.linesep)
    write_bytes(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))


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
        write_visible(markdown)
        return
    from rich.markdown import Markdown  # noqa: PLC0415 - where there is a terminal

    _console().print(Markdown(visible(markdown)))


def show(*found: RenderableType) -> None:
    """Print tables and texts on stdout: as wide as the terminal, or as they need where there is none."""
    from rich.console import Console  # noqa: PLC0415 - where there is something to show

    console = _console()
    if console.is_terminal or os.environ.get("FORCE_COLOR"):
        console.print(*found)
        return
    plain = Console(file=io.StringIO(), width=_WIDE, highlight=False, markup=False, color_system=None)
    plain.print(*found)
    printed = plain.file.getvalue()  # type: ignore[attr-defined]
    _write_plain("".join(f"{line.rstrip()}\n" for line in printed.split("\n")[:-1]))


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

    console = Console(stderr=stderr, highlight=False, markup=False)
    if not console.is_terminal:
        console.file = _Log(sys.stderr if stderr else sys.stdout)  # type: ignore[assignment]
    console.push_render_hook(_Visible())  # type: ignore[arg-type] # a protocol in all but name
    return console


class _Visible:
    """A hook of rich: what is printed has no controls but those of rich itself."""

    def process_renderables(self, renderables: list[Any]) -> list[Any]:
        """Return each renderable in a cover."""
        return [_Covered(renderable) for renderable in renderables]


@dataclass(frozen=True, slots=True)
class _Covered:
    renderable: Any

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        from rich.segment import Segment  # noqa: PLC0415 - where there is a console

        for segment in console.render(self.renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


@dataclass(frozen=True, slots=True)
class _Log:
    """A stream that is no terminal: what CI keeps, and acts on."""

    stream: TextIO

    def write(self, text: str) -> int:
        """Write lines."""
        encoding = self.stream.encoding or "utf-8"
        return self.stream.write(no_command(text).encode(encoding, "backslashreplace").decode(encoding))

    def flush(self) -> None:
        """Flush the stream."""
        self.stream.flush()
