"""For people: each finding with the lines it is about, what DeepSpeed does, and what would mend it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from dsmigrate.checking.formats.places import span
from dsmigrate.checking.job import Checked
from dsmigrate.checking.logged import explained_by
from dsmigrate.document import Document, Encoding
from dsmigrate.languages import mark, say
from dsmigrate.rules import Finding, Severity

if TYPE_CHECKING:  # few checks read a log
    from dsmigrate.messages.logs import Log

_STYLES = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.INFO: "bold cyan",
    Severity.HINT: "bold blue",
}
_RELATED = 8
"""So many further places of a finding are printed."""
_WIDEST = 200
Line: TypeAlias = tuple[tuple[str, str], ...]
"""Pieces of a line, each with its style in the words of rich; "" is none."""


def render(checked: Sequence[Checked], *, logs: Sequence[Log] = (), statistics: bool = False) -> Iterator[Line]:
    """Yield the lines of the report: what logs say, with the findings that explain it, then what configs hold."""
    for log in logs:
        yield from _log(log, checked)
    for entry in checked:
        if entry.error:
            yield (entry.name, "bold"), (": ", ""), (entry.error, "bold red")
        for finding in entry.findings:
            yield from _finding(entry, finding)
    if statistics:
        yield from _statistics(checked)
    if checked:
        yield _summary(checked)


def _log(log: Log, checked: Sequence[Checked]) -> Iterator[Line]:
    if log.error:
        yield (log.name, "bold"), (": ", ""), (log.error, "bold red")
        return
    for seen in log.seen:
        severity = seen.text.severity
        often = say(" ({count} times)", count=seen.count) if seen.count > 1 else ""
        yield (
            (f"{log.name}:{seen.line}", "bold"),
            (": ", ""),
            (say(severity.value), _STYLES[severity]),
            (f"[{seen.entry.name}] {seen.said}{often}", ""),
        )
        yield (("  ", ""), (seen.entry.cause, ""))
        yield ("  ", ""), (say("fix"), "green"), (say(": {title}", title=seen.entry.cure), "")
        for entry, finding in explained_by(seen, checked):
            assert entry.document is not None  # noqa: S101 - a file with findings was read
            line = span(entry.document, finding.start, finding.end).start.line + 1
            yield (("  ", ""), (f"{entry.name}:{line}: [{finding.code}] {finding.message}", "bold"))
        yield ()
    yield (
        (
            say(
                "{name}: {count} known message{en_s}",
                name=log.name,
                count=len(log.seen),
                en_s="" if len(log.seen) == 1 else "s",
            ),
            "",
        ),
    )


def _finding(entry: Checked, finding: Finding) -> Iterator[Line]:
    document = entry.document
    assert document is not None  # noqa: S101 - a file with findings was read
    place = span(document, finding.start, finding.end, Encoding.UTF32)
    style = _STYLES[finding.severity]
    yield (
        (f"{entry.name}:{place.start.line + 1}:{place.start.character + 1}", "bold"),
        (": ", ""),
        (say(finding.severity.value), style),
        (f"[{finding.code}] {finding.message}", ""),
    )
    yield from _excerpt(document, finding.start, finding.end, style)
    for other in finding.related[:_RELATED]:
        at = span(document, other.start, other.end, Encoding.UTF32).start
        yield ((say("  line {line}: {message}", line=at.line + 1, message=other.message), "dim"),)
    if len(finding.related) > _RELATED:
        yield ((say("  and {count} more", count=len(finding.related) - _RELATED), "dim"),)
    for fix in finding.fixes[:1]:
        yield (
            ("  ", ""),
            (say("fix") if fix.safe else say("fix (--unsafe-fixes)"), "green"),
            (say(": {title}", title=fix.title), ""),
        )
    yield ()


def _excerpt(document: Document, start: int, end: int, style: str) -> Iterator[Line]:
    """Yield the line of a range with the range underlined; of a range over several lines, its first."""
    first = document.position(start, Encoding.UTF32)
    line_start, line_end = document.lines.line_range(first.line)
    line = document.text[line_start:line_end].rstrip("\r\n")
    if len(line) > _WIDEST:
        return
    number = f"{first.line + 1}"
    shown = line.replace("\t", " ").replace("\ufeff", "")
    lost = len(line) - len(line.replace("\ufeff", ""))
    width = max(1, min(end, line_start + len(line)) - start)
    yield (f"{number} | ", "dim"), (shown, "")
    yield (f"{' ' * len(number)} | ", "dim"), (" " * (first.character - lost), ""), ("^" * width, style)


def _statistics(checked: Sequence[Checked]) -> Iterator[Line]:
    counts = Counter(finding.code for entry in checked for finding in entry.findings)
    for code, count in counts.most_common():
        yield ((f"{count:6}  {code}", ""),)


def _summary(checked: Sequence[Checked]) -> Line:
    counts = Counter(finding.severity for entry in checked for finding in entry.findings)
    unread = sum(1 for entry in checked if entry.error)
    parts = [_counted(severity, counts[severity]) for severity in Severity if counts[severity]]
    parts += [say("{count} unreadable", count=unread)] if unread else []
    files = say("{count} file{en_s}", count=len(checked), en_s="s" if len(checked) != 1 else "")
    mended = sum(len(entry.fixed) for entry in checked)
    fixed = say("{count} fixed, ", count=mended) if mended else ""
    told = say(", ").join(parts) or say("nothing to report")
    hidden = sum(entry.hidden for entry in checked)
    if hidden:
        told += say("; {count} more with --min-severity hint", count=hidden)
    said = say("{files}: {fixed}{told}", files=files, fixed=fixed, told=told)
    if len(checked) != 1 or checked[0].error:
        return ((said, ""),)
    entry = checked[0]
    read_as = say(
        " (DeepSpeed {version}, {why_version}; read by {consumer}, {why_consumer})",
        version=entry.version,
        why_version=entry.why_version,
        consumer=entry.consumer.title,
        why_consumer=entry.why_consumer,
    )
    return (said, ""), (read_as, "dim")


def _counted(severity: Severity, count: int) -> str:
    return say(_COUNTED[severity], count=count, en_s="" if count == 1 else "s")


_COUNTED = {
    Severity.ERROR: mark("{count} error{en_s}"),
    Severity.WARNING: mark("{count} warning{en_s}"),
    Severity.INFO: mark("{count} note{en_s}"),
    Severity.HINT: mark("{count} hint{en_s}"),
}
