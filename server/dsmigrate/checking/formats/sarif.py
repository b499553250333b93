"""For code scanning: SARIF 2.1.0 (OASIS), with the rules that fired and the fixes of their findings."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dsmigrate import __version__
from dsmigrate.checking.formats.places import message_url, span, url
from dsmigrate.checking.job import Checked
from dsmigrate.document import Document, Encoding, TextEdit, render_path
from dsmigrate.languages import say
from dsmigrate.rules import Finding, Fix, Rule, Severity, every_rule

if TYPE_CHECKING:  # few checks read a log
    from dsmigrate.messages.entries import Entry
    from dsmigrate.messages.logs import Log, Seen

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note", Severity.HINT: "note"}
_BASE = "SRCROOT"


def render(checked: Sequence[Checked], *, logs: Sequence[Log] = ()) -> str:
    """Return the log of one run; columns count UTF-16 units, as its ``columnKind`` says."""
    entries = list({seen.entry.name: seen.entry for log in logs for seen in log.seen}.values())
    fired = {finding.code for entry in checked for finding in entry.findings}
    rules = [rule for rule in every_rule() if rule.code in fired]
    if any(code.startswith("CV") for code in fired):
        from dsmigrate.convert.rules import rules_of  # noqa: PLC0415 - for other forms than configs

        rules += rules_of(fired)
    index = {rule.code: number for number, rule in enumerate(rules)}
    unread = [(entry.name, entry.error) for entry in checked if entry.document is None]
    unread += [(log.name, log.error) for log in logs if log.error]
    index |= {entry.name: len(rules) + number for number, entry in enumerate(entries)}
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "dsmigrate",
                "version": __version__,
                "semanticVersion": __version__,
                "informationUri": "https://github.com/dsmigrate/dsmigrate",
                "rules": [*map(_rule, rules), *map(_entry, entries)],
            }
        },
        "columnKind": "utf16CodeUnits",
        "invocations": [
            {"executionSuccessful": not unread, "toolExecutionNotifications": [_unread(*one) for one in unread]}
        ],
        "results": [_seen(log.name, seen, index[seen.entry.name]) for log in logs for seen in log.seen]
        + [
            _result(entry.name, entry.document, finding, index[finding.code])
            for entry in checked
            if entry.document is not None
            for finding in entry.findings
        ],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": "".join(part.capitalize() for part in rule.name.split("-")),
        "shortDescription": {"text": say(rule.summary)},
        "fullDescription": {"text": say(rule.why), "markdown": say(rule.why)},
        "helpUri": url(rule.code),
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": ["deepspeed", rule.effect.value]},
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.name,
        "shortDescription": {"text": entry.texts[0].shown},
        "fullDescription": {"text": entry.cause, "markdown": entry.cause},
        "help": {"text": entry.cure, "markdown": entry.cure},
        "helpUri": message_url(entry),
        "properties": {"tags": [entry.package]},
    }


def _seen(name: str, seen: Seen, index: int) -> dict[str, Any]:
    place = {"artifactLocation": _artifact(name), "region": {"startLine": seen.line}}
    return {
        "ruleId": seen.entry.name,
        "ruleIndex": index,
        "level": _LEVELS[seen.text.severity],
        "message": {"text": f"{seen.said}\n{seen.entry.cause} {seen.entry.cure}"},
        "locations": [{"physicalLocation": place}],
        "occurrenceCount": seen.count,
    }


def _result(name: str, document: Document, finding: Finding, index: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [
            {
                "physicalLocation": _location(name, document, finding.start, finding.end),
                "logicalLocations": [{"fullyQualifiedName": render_path(finding.path), "kind": "member"}],
            }
        ],
        "properties": {"effect": finding.effect.value},
    }
    if finding.related:
        found["relatedLocations"] = [
            {"physicalLocation": _location(name, document, other.start, other.end), "message": {"text": other.message}}
            for other in finding.related
        ]
    if finding.fixes:
        found["fixes"] = [_fix(name, document, fix) for fix in finding.fixes]
    return found


def _fix(name: str, document: Document, fix: Fix) -> dict[str, Any]:
    return {
        "description": {"text": fix.title},
        "artifactChanges": [
            {"artifactLocation": _artifact(name), "replacements": list(_replacements(document, fix.edits))}
        ],
    }


def _replacements(document: Document, edits: Iterable[TextEdit]) -> Iterable[dict[str, Any]]:
    for edit in edits:
        yield {
            "deletedRegion": _region(document, edit.start, edit.end),
            "insertedContent": {"text": edit.text},
        }


def _location(name: str, document: Document, start: int, end: int) -> dict[str, Any]:
    return {"artifactLocation": _artifact(name), "region": _region(document, start, end)}


def _region(document: Document, start: int, end: int) -> dict[str, int]:
    place = span(document, start, end, Encoding.UTF16)
    return {
        "startLine": place.start.line + 1,
        "startColumn": place.start.character + 1,
        "endLine": place.end.line + 1,
        "endColumn": place.end.character + 1,
    }


def _artifact(name: str) -> dict[str, Any]:
    path = Path(name)
    if path.is_absolute():
        return {"uri": path.as_uri()}
    return {"uri": quote(os.fsencode(path.as_posix())), "uriBaseId": _BASE}


def _unread(name: str, error: str) -> dict[str, Any]:
    location = {"physicalLocation": {"artifactLocation": _artifact(name)}}
    return {"level": "error", "message": {"text": error}, "locations": [location]}
