"""From findings to diagnostics, as far as they are this server's to report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dsmigrate.checking.formats.places import url
from dsmigrate.document import Breaks, Code
from dsmigrate.language_server.asking import scripts
from dsmigrate.language_server.recognition import Kind
from dsmigrate.language_server.settings import SyntaxOwner
from dsmigrate.language_server.yaml import yaml_of
from dsmigrate.languages import say
from dsmigrate.patience import LimitError
from dsmigrate.rules import Finding, Severity, Tag

if TYPE_CHECKING:
    from dsmigrate.editing.view import View
    from dsmigrate.language_server.documents import OpenDocument
    from dsmigrate.language_server.session import Session
    from dsmigrate.language_server.wire import Data, Lines

SOURCE = "dsmigrate"
_SEVERITY = {Severity.ERROR: 1, Severity.WARNING: 2, Severity.INFO: 3, Severity.HINT: 4}
_TAGS = {Tag.UNNECESSARY: 1, Tag.DEPRECATED: 2}
MOST = 1000
"""Diagnostics of one document: editors list no more, and a person reads none beyond."""
_TEXT = "DS0"
"""The family of rules about the text, which a client's own JSON support may report as well."""


def diagnostics(session: Session, document: OpenDocument) -> list[Data] | None:
    """Return the diagnostics of a document; None for one that is none of ours."""
    if document.kind is Kind.PYTHON:
        return _of_script(session, document)
    if document.kind is Kind.YAML:
        return _of_yaml(session, document)
    try:
        if not session.takes(document):
            return None
        view = session.view(document)
    except LimitError:
        return _left_out(0, is_cut=True)
    key = ("diagnostics", id(view))
    if key not in document.memory:
        hidden = _reported_by_client(session, document, view)
        lines = document.lines
        found = [finding for finding in view.findings if finding not in hidden]
        document.memory[key] = [
            *(diagnostic(session, document.uri, lines, finding) for finding in worst(found)),
            *_left_out(len(found), is_cut=view.context.is_cut),
        ]
    made: Any = document.memory[key]
    return list(made)


def _of_script(session: Session, document: OpenDocument) -> list[Data] | None:
    """Return the diagnostics of the configs in a script; what Python allows and JSON does not is no fault there."""
    try:
        found = scripts(session, document)
    except LimitError:
        return _left_out(0, is_cut=True)
    if not found:
        return None
    findings = [finding for asked in found for finding in asked.view.findings if not finding.code.startswith(_TEXT)]
    return [
        *(diagnostic(session, document.uri, document.lines, finding) for finding in worst(findings)),
        *_left_out(len(findings), is_cut=any(asked.view.context.is_cut for asked in found)),
    ]


def _of_yaml(session: Session, document: OpenDocument) -> list[Data] | None:
    """Return the diagnostics of a YAML file; a fault of the YAML itself is one at its line."""
    try:
        found = yaml_of(session, document)
    except LimitError:
        return _left_out(0, is_cut=True)
    if found is None:
        return None
    if found.line is not None:
        starts = document.lines.index.starts
        start = starts[min(found.line, len(starts)) - 1]
        end = start + len(document.text[start:].partition("\n")[0])
        place = document.lines.range(start, end)
        return [{"range": place, "severity": 1, "source": SOURCE, "message": found.error}]
    return of_findings(session, document.uri, document.lines, found.findings)


def of_findings(session: Session, uri: str, lines: Lines, findings: Sequence[Finding]) -> list[Data]:
    """Return findings as diagnostics, the worst of very many."""
    made = [diagnostic(session, uri, lines, finding) for finding in worst(findings)]
    return [*made, *_left_out(len(findings), is_cut=False)]


def worst(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings; of more than ``MOST`` the worst, in the order of the text."""
    if len(findings) <= MOST:
        return findings
    numbers = sorted(range(len(findings)), key=lambda number: _SEVERITY[findings[number].severity])
    return [findings[number] for number in sorted(numbers[:MOST])]


def _left_out(count: int, *, is_cut: bool) -> list[Data]:
    """Return the diagnostic that says that others are missing, and none where all are there."""
    said = []
    if count > MOST:
        said.append(say("the worst {most} of {count} findings are shown", most=MOST, count=count))
    if is_cut:
        said.append(say("the check was stopped because it took too long, so there may be more findings"))
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    return [{"range": whole, "severity": 3, "source": SOURCE, "message": text} for text in said]


def diagnostic(session: Session, uri: str, lines: Lines, finding: Finding) -> Data:
    """Return one finding as a diagnostic, with what the client can show of it."""
    made: Data = {
        "range": lines.range(finding.start, finding.end),
        "severity": _SEVERITY[finding.severity],
        "code": finding.code,
        "source": SOURCE,
        "message": finding.message,
    }
    support = "text_document.diagnostic" if session.client.pulls_diagnostics else "text_document.publish_diagnostics"
    if session.client.can(f"{support}.code_description_support") is not False:
        made["codeDescription"] = {"href": url(finding.code)}
    if finding.tags and session.client.can(f"{support}.tag_support") is not None:
        made["tags"] = sorted(_TAGS[tag] for tag in finding.tags)
    if finding.related and session.client.can(f"{support}.related_information"):
        made["relatedInformation"] = [
            {"location": {"uri": uri, "range": lines.range(related.start, related.end)}, "message": related.message}
            for related in finding.related
        ]
    return made


def _reported_by_client(session: Session, document: OpenDocument, view: View) -> frozenset[Finding]:
    """Return findings about the text that the client's own JSON support reports at the same place.

    That is every fault of strict JSON in language id ``json``; in ``jsonc`` comments are no fault.
    """
    owner = session.settings(document).syntax_errors
    by_client = owner is SyntaxOwner.CLIENT or (owner is SyntaxOwner.AUTO and session.client.is_vs_code)
    if not by_client or document.language not in {"json", "jsonc"}:
        return frozenset()
    allowed = {Code.COMMENT} if document.language == "jsonc" else set()
    faults = {item.start for item in view.document.problems if Breaks.JSON in item.breaks and item.code not in allowed}
    return frozenset(finding for finding in view.findings if finding.code.startswith(_TEXT) and finding.start in faults)
