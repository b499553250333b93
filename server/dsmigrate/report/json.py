"""The JSON contract of ``dsmigrate migrate``; its schema is ``schemas/output/migrate.schema.json``.

Fields may be added, never renamed. ``config``, ``config_path`` and ``launch`` at the top are those of the first
converted file; every file carries its own.
"""

from __future__ import annotations

import json
from typing import Any

from dsmigrate.codemod.model import Change
from dsmigrate.report.view import Entry, Report

VERSION = 1


def render(report: Report) -> str:
    """Return the report as JSON text with a final newline."""
    return json.dumps(document(report), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def document(report: Report) -> dict[str, Any]:
    """Return the report as the object that the contract describes."""
    files = [_file(entry) for entry in report.entries]
    first = next((file for file in files if file["config"] is not None), None)
    return {
        "version": VERSION,
        "files": files,
        "config": first["config"] if first else None,
        "config_path": first["config_path"] if first else None,
        "launch": next((file["launch"] for file in files if file["launch"]), None),
        "summary": report.summary(),
        "written": list(report.written),
        "replaced": list(report.replaced),
    }


def _file(entry: Entry) -> dict[str, Any]:
    result = entry.result
    return {
        "path": result.path,
        "role": "launcher" if entry.is_launcher else "script",
        "status": result.status.value,
        "changes": [_change(change) for change in result.changes],
        "diff": result.diff,
        "config": result.config,
        "config_path": entry.config_path,
        "launch": result.launch[0] if result.launch else None,
        "launch_commands": list(result.launch),
        "launch_placeholders": list(result.placeholders),
        "notes": [_change(note) for note in result.notes],
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "code": change.code,
        "kind": change.kind.value,
        "line": change.line,
        "end_line": change.end_line,
        "message": change.message,
        "reason": change.reason,
    }
