"""What the changed configs of a range come to: findings, comparisons, and whether that fails the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dsmigrate.checking.formats import github as findings_format
from dsmigrate.checking.job import Checked, check_bytes
from dsmigrate.diff.changed import Outcome
from dsmigrate.diff.formats import github, markdown
from dsmigrate.diff.ranges import compare_range
from dsmigrate.rules import Finding, Severity
from dsmigrate.settings.check import CheckSettings
from dsmigrate.settings.diff import DiffSettings

_CHECKED = (Severity.ERROR, Severity.WARNING)
_SHOWN = 50
"""How many findings the report lists; the annotations and `dsmigrate check` have all."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The outcomes of a range, and what is found in each config as it is afterwards.

    ``before`` is what is found in the old texts, under the new names and with what is around the new ones.
    """

    outcomes: tuple[Outcome, ...]
    checked: tuple[Checked, ...]
    before: tuple[Checked, ...] = ()

    def annotations(self) -> str:
        """Return the workflow commands, findings first."""
        return findings_format.render(self._untold()) + github.render(self.outcomes)

    def report(self, *, link: markdown.Link | None = None, marker: bool = False, limit: int | None = None) -> str:
        """Return the report as Markdown: comparisons, then findings; at most ``limit`` characters."""
        found = _findings(*self._by_age(), link)
        room = None if limit is None else limit - len(found)
        return markdown.render_all(self.outcomes, link=link, marker=marker, limit=room) + found

    def _untold(self) -> tuple[Checked, ...]:
        """Return the findings that no comparison tells, be it in the same words."""
        told: set[tuple[str, object, object]] = set()
        for outcome in self.outcomes:
            for said in outcome.compared.result.explained if outcome.compared is not None else ():
                told.add((outcome.entry.path, said.message, None))
                told |= {(outcome.entry.path, finding.code, finding.start) for finding in said.found}
        return tuple(
            replace(
                entry,
                findings=tuple(
                    one
                    for one in entry.findings
                    if told.isdisjoint({(entry.name, one.code, one.start), (entry.name, one.message, None)})
                ),
            )
            for entry in self.checked
        )

    def _by_age(self) -> tuple[tuple[Checked, ...], tuple[Checked, ...]]:
        """Return the findings that no comparison tells: those of the new configs alone, and those of both sides."""
        there = {
            (entry.name, finding.code, about)
            for entry in self.before
            for finding in entry.findings
            for about in (finding.message, finding.path)
        }
        untold = self._untold()

        def kept(*, old: bool) -> tuple[Checked, ...]:
            def is_kept(name: str, one: Finding) -> bool:
                return there.isdisjoint({(name, one.code, one.message), (name, one.code, one.path)}) is not old

            return tuple(
                replace(entry, findings=tuple(one for one in entry.findings if is_kept(entry.name, one)))
                for entry in untold
            )

        return kept(old=False), kept(old=True)

    def exit_code(self, fail_on: str) -> int:
        """Return 2 for a config that cannot be read, 1 for what is at least as severe as ``fail_on``, else 0.

        An error of a check counts as breaking, a warning as a warning, what was found before the range as nothing.
        """
        if any(entry.error for entry in self.checked) or any(outcome.error for outcome in self.outcomes):
            return 2
        levels = {Severity.ERROR: ("breaking", "warning", "info"), Severity.WARNING: ("warning", "info")}
        new, _ = self._by_age()
        found = any(fail_on in levels.get(one.severity, ()) for entry in new for one in entry.findings)
        return 1 if found or any(outcome.fails(fail_on) for outcome in self.outcomes) else 0


def run(revisions: str, folder: Path, diff: DiffSettings, check: CheckSettings, paths: Sequence[str] = ()) -> Ran:
    """Compare and check every config that a range changes; raises GitError."""
    outcomes = compare_range(revisions, folder, diff, paths=paths)
    checked = [
        check_bytes(outcome.entry.new.name, outcome.entry.new.data, outcome.entry.new.folder, check)
        for outcome in outcomes
        if outcome.entry.new is not None
    ]
    before = [
        check_bytes(outcome.entry.new.name, outcome.entry.old.data, outcome.entry.new.folder, check)
        for outcome in outcomes
        if outcome.entry.old is not None and outcome.entry.new is not None
    ]
    return Ran(outcomes, tuple(_severe(entry) for entry in checked), tuple(before))


def _severe(entry: Checked) -> Checked:
    return replace(entry, findings=tuple(found for found in entry.findings if found.severity in _CHECKED))


def _findings(new: Sequence[Checked], before: Sequence[Checked], link: markdown.Link | None) -> str:
    return _folded(("new finding", "new findings"), new, link) + _folded(
        ("finding that was there before", "findings that were there before"), before, link
    )


def _folded(what: tuple[str, str], checked: Sequence[Checked], link: markdown.Link | None) -> str:
    """Return findings as a list that is folded away unless one is an error; each message once, with its places."""
    groups: dict[tuple[str, str], list[tuple[Checked, Finding]]] = {}
    for entry in checked:
        for found in entry.findings:
            groups.setdefault((found.code, found.message), []).append((entry, found))
    if not groups:
        return ""
    rows = [f"- **{places[0][1].severity.value}** {markdown.finding(places, link)}" for places in groups.values()]
    more = [f"- {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else []
    title = f"{len(rows)} {what[len(rows) != 1]}"
    opened = any(found.severity is Severity.ERROR for places in groups.values() for _, found in places)
    begin = f"\n<details{' open' if opened else ''}><summary>{title}</summary>"
    return "\n".join((begin, "", *rows[:_SHOWN], *more, "", "</details>", ""))
