"""For GitHub Actions: workflow commands that become annotations of the changed lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsmigrate.checking.formats.github import command
from dsmigrate.checking.formats.places import span
from dsmigrate.diff.changed import Outcome
from dsmigrate.diff.formats.places import place
from dsmigrate.diff.job import Compared
from dsmigrate.diff.model import Explained, Severity, Spot
from dsmigrate.document import Encoding

_COMMANDS = {Severity.BREAKING: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(outcomes: Sequence[Outcome]) -> str:
    """Return a line per explanation that does something; lines and columns are one-based, of the new file.

    What is about a key that is gone stands at the section that held it.
    """
    return "".join(f"{line}\n" for outcome in outcomes for line in _lines(outcome))


def _lines(outcome: Outcome) -> Iterator[str]:
    file = outcome.entry.path
    if outcome.compared is None:
        yield command("error" if outcome.error else "notice", outcome.verdict, {"file": file})
        return
    for said in outcome.compared.result.explained:
        if said.severity in _COMMANDS:
            message = f"{said.message}\n{said.advice}" if said.advice else said.message
            yield command(
                _COMMANDS[said.severity],
                message,
                {"file": file} | _where(outcome.compared, said) | {"title": _title(said)},
            )


def _title(said: Explained) -> str:
    return f"{said.code} ({', '.join(effect.value for effect in said.effects)})"


def _where(compared: Compared, said: Explained) -> dict[str, str]:
    old, new = place(compared, said)
    document = compared.new.document
    if new is None:
        start = _section(compared, old)
        line = str(document.position(start, Encoding.UTF32).line + 1)
        return {"line": line, "endLine": line}
    found = span(document, new.start, new.end, Encoding.UTF32)
    where = {"line": str(found.start.line + 1), "endLine": str(found.end.line + 1)}
    if found.start.line == found.end.line:  # GitHub takes columns for ranges within a line alone
        where |= {"col": str(found.start.character + 1), "endColumn": str(found.end.character + 1)}
    return where


def _section(compared: Compared, gone: Spot | None) -> int:
    """Return where the innermost section of the new file starts that held a key which is gone; 0 for the top."""
    path = () if gone is None else gone.path[:-1]
    for length in range(len(path), 0, -1):
        member = compared.new.document.member_at(path[:length])
        if member is not None:
            return member.start
    return 0
