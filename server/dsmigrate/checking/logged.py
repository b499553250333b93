"""Messages of a log beside the findings in configs: which finding explains which message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dsmigrate.checking.job import Checked
from dsmigrate.document import render_path
from dsmigrate.rules import Finding, Severity

if TYPE_CHECKING:  # few checks read a log
    from dsmigrate.messages.logs import Log, Seen

_WORST_FIRST = list(Severity)


def explained_by(seen: Seen, checked: Sequence[Checked]) -> list[tuple[Checked, Finding]]:
    """Return the findings that say of a config what a message says of the run: by code, else by key."""
    return [(entry, finding) for entry in checked for finding in entry.findings if _explains(finding, seen)]


def explaining_first(checked: Sequence[Checked], logs: Sequence[Log]) -> list[Checked]:
    """Return what was checked with the findings that explain a message before the others."""

    def later(finding: Finding) -> bool:
        return not any(_explains(finding, seen) for log in logs for seen in log.seen)

    return [replace(entry, findings=tuple(sorted(entry.findings, key=later))) for entry in checked]


def at_least(log: Log, least: Severity) -> Log:
    """Return a log with the messages that are at least so bad."""
    most = _WORST_FIRST.index(least)
    return replace(log, seen=tuple(seen for seen in log.seen if _WORST_FIRST.index(seen.text.severity) <= most))


def _explains(finding: Finding, seen: Seen) -> bool:
    if seen.entry.codes:
        return finding.code in seen.entry.codes
    return finding.severity in {Severity.ERROR, Severity.WARNING} and render_path(finding.path) in seen.entry.keys
