"""A config as git's textconv shows it: a line per key, in one order, under one name, with the value DeepSpeed reads."""

from __future__ import annotations

from dsmigrate.checking.recognise import looks_like_config
from dsmigrate.diff.side import Side
from dsmigrate.document import DocumentError, parse_bytes
from dsmigrate.editing.view import View
from dsmigrate.knowledge import MISSING
from dsmigrate.knowledge.wording import json_text
from dsmigrate.rules import Settings
from dsmigrate.rules.context import UNKNOWN


def normalised(data: bytes, version: str | None = None) -> bytes:
    """Return ``zero_optimization.stage = 3`` and so on, sorted; what is no config comes back as it is.

    Order, spelling of numbers, comments and other names of the same key leave no trace. What a file leaves out stays
    out: its default is another release's business. A key that nobody knows ends with ``(unknown)``.
    """
    try:
        document = parse_bytes(data)
    except DocumentError:
        return data
    if not looks_like_config(document) or not document.is_readable:
        return data
    side = Side(View(document, Settings(version=version)), "")
    return "".join(f"{line}\n" for line in sorted(_line(side, path) for path in side.given)).encode("utf-8", "replace")


def _line(side: Side, path: str) -> str:
    written = side.given[path][0]
    meant = side.value(path) if side.reads(path) else written
    value = written if meant is MISSING or meant is UNKNOWN else meant
    mark = "" if side.reads(path) or side.known.key(path) is not None else "  (unknown)"
    return f"{path} = {json_text(value)}{mark}"
