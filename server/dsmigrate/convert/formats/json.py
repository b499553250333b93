"""For programs: the contract of ``schemas/output/convert.schema.json``."""

from __future__ import annotations

import json
from typing import Any

from dsmigrate.checking.formats.json import diagnostic
from dsmigrate.convert.job import Converted, Request
from dsmigrate.convert.model import Note
from dsmigrate.document.positions import LineIndex

VERSION = 1


def render(converted: Converted, request: Request, path: str | None) -> str:
    """Return the document of a conversion; ``path`` is where the result was written, None for nowhere."""
    source = converted.read
    lines = LineIndex(source.text)
    document = {
        "version": VERSION,
        "deepspeed_version": converted.version,
        "source": {"name": request.name, "form": source.form.value, "consumer": source.consumer.value},
        "target": {"form": request.target.value, "consumer": converted.consumer.value, "path": path},
        "complete": converted.is_complete,
        "text": converted.written.text,
        "config": converted.config,
        "arguments": dict(converted.arguments),
        "around": dict(source.around),
        "notes": [_note(note, lines) for note in converted.notes],
        "diagnostics": [diagnostic(converted.document, finding) for finding in converted.findings],
    }
    return json.dumps(document, indent=2, default=str) + "\n"


def _note(note: Note, lines: LineIndex) -> dict[str, Any]:
    line = None if note.place is None else lines.line_of(note.place.key_start) + 1
    return {"code": note.code, "kind": note.kind.value, "key": note.key, "message": note.message, "line": line}
