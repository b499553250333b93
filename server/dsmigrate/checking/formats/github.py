"""For GitHub Actions: workflow commands that become annotations of the changed lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dsmigrate.checking.formats.places import span
from dsmigrate.checking.job import Checked
from dsmigrate.document import Encoding
from dsmigrate.languages import say
from dsmigrate.rules import Severity

if TYPE_CHECKING:  # few checks read a log
    from dsmigrate.messages.logs import Log

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice", Severity.HINT: "notice"}


def render(checked: Sequence[Checked], *, logs: Sequence[Log] = ()) -> str:
    """Return a line per message of a log and per finding; lines and columns are one-based."""
    return "".join(f"{line}\n" for line in (*_of_logs(logs), *_lines(checked)))


def _of_logs(logs: Sequence[Log]) -> Iterator[str]:
    for log in logs:
        if log.error:
            yield command("error", log.error, {"file": log.name})
        for seen in log.seen:
            entry = seen.entry
            told = f"{seen.said}\n{entry.cause}\n{entry.cure}"
            yield command(
                _COMMANDS[seen.text.severity], told, {"file": log.name, "line": str(seen.line), "title": entry.name}
            )


def _lines(checked: Sequence[Checked]) -> Iterator[str]:
    for entry in checked:
        if entry.document is None:
            yield command("error", entry.error, {"file": entry.name})
            continue
        for finding in entry.findings:
            place = span(entry.document, finding.start, finding.end, Encoding.UTF32)
            properties = {
                "file": entry.name,
                "line": str(place.start.line + 1),
                "endLine": str(place.end.line + 1),
                "title": f"{finding.code} ({finding.effect.value})",
            }
            if place.start.line == place.end.line:  # GitHub takes columns for ranges within a line alone
                properties |= {"col": str(place.start.character + 1), "endColumn": str(place.end.character + 1)}
            lines = [span(entry.document, other.start, other.end).start.line + 1 for other in finding.related]
            others = [
                say("  line {line}: {message}", line=line, message=other.message)
                for line, other in zip(lines, finding.related, strict=True)
            ]
            yield command(_COMMANDS[finding.severity], "\n".join((finding.message, *others)), properties)


def command(kind: str, text: str, properties: Mapping[str, str]) -> str:
    """Return a workflow command, ``::error file=ds.json,line=3::text``, from which no text can break out."""
    spelled = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind} {spelled}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
