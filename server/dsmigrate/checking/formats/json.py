"""For programs: the contract of ``schemas/output/check.schema.json``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dsmigrate.checking.formats.places import message_url, span, url
from dsmigrate.checking.job import Checked
from dsmigrate.checking.logged import explained_by
from dsmigrate.document import Document, Position, render_path
from dsmigrate.rules import Finding, Fix

if TYPE_CHECKING:  # few checks read a log
    from dsmigrate.messages.logs import Log

VERSION = 1


def render(checked: Sequence[Checked], *, logs: Sequence[Log] = (), diff: bool = False) -> str:
    """Return the document of a check; lines and characters are zero-based, characters UTF-16 units as in LSP.

    With ``diff`` each file has the unified diff of its fixes.
    """
    told: dict[str, Any] = {"version": VERSION, "files": [_file(entry, diff=diff) for entry in checked]}
    if logs:
        told["logs"] = [_log(log, checked) for log in logs]
    return json.dumps(told, indent=2) + "\n"


def _log(log: Log, checked: Sequence[Checked]) -> dict[str, Any]:
    return {
        "path": log.name,
        "error": log.error or None,
        "messages": [
            {
                "id": seen.entry.name,
                "severity": seen.text.severity.value,
                "line": seen.line - 1,
                "count": seen.count,
                "message": seen.said,
                "package": seen.entry.package,
                "cause": seen.entry.cause,
                "cure": seen.entry.cure,
                "keys": list(seen.entry.keys),
                "codes": list(seen.entry.codes),
                "explained_by": [
                    {"path": entry.name, "code": finding.code, "key": render_path(finding.path)}
                    for entry, finding in explained_by(seen, checked)
                ],
                "url": message_url(seen.entry),
            }
            for seen in log.seen
        ],
    }


def _file(entry: Checked, *, diff: bool) -> dict[str, Any]:
    document = entry.document
    return {
        "path": entry.name,
        "deepspeed_version": entry.version,
        "deepspeed_version_from": entry.why_version,
        "consumer": entry.consumer.value,
        "consumer_from": entry.why_consumer,
        "error": entry.error or None,
        "fixed": [{"code": finding.code, "title": fix.title} for finding, fix in entry.fixed],
        "diff": entry.diff if diff else None,
        "diagnostics": [] if document is None else [diagnostic(document, finding) for finding in entry.findings],
    }


def diagnostic(document: Document, finding: Finding) -> dict[str, Any]:
    """Return one finding as the contract has it."""
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "message": finding.message,
        "key": render_path(finding.path),
        "range": _range(document, finding.start, finding.end),
        "effect": finding.effect.value,
        "tags": sorted(tag.value for tag in finding.tags),
        "related": [
            {"range": _range(document, other.start, other.end), "message": other.message} for other in finding.related
        ],
        "fix": _fix(document, finding.fixes[0]) if finding.fixes else None,
        "fixes": [_fix(document, fix) for fix in finding.fixes],
        "url": url(finding.code),
    }


def _fix(document: Document, fix: Fix) -> dict[str, Any]:
    edits = [{"range": _range(document, edit.start, edit.end), "text": edit.text} for edit in fix.edits]
    return {"title": fix.title, "safe": fix.safe, "edits": edits}


def _range(document: Document, start: int, end: int) -> dict[str, Any]:
    place = span(document, start, end)
    return {"start": _position(place.start), "end": _position(place.end)}


def _position(position: Position) -> dict[str, int]:
    return {"line": position.line, "character": position.character}
