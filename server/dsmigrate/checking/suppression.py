"""Findings that the file itself asks to leave out.

Where the dialect has comments: ``// dsmigrate: ignore[DS401]`` at the end of a line, or alone on the line before, and
``// dsmigrate: ignore-file[DS4]`` anywhere; without codes, all of them. In strict JSON, a key at the top level that
DeepSpeed swallows: ``"_dsmigrate": {"ignore": ["DS401"], "ignore-at": {"zero_optimization.stage": ["DS4"]}}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dsmigrate.document import Document, PathError, parse_path
from dsmigrate.document.paths import Path
from dsmigrate.rules import Finding

KEY = "_dsmigrate"
_WORD = "dsmigrate"
"""What every such text holds."""
_COMMENT = re.compile(r"dsmigrate:\s*(ignore(?:-file)?)(?:\[([^\]]*)\])?")
_NOT_BLANK = re.compile(r"\S")
_HASH = re.compile(r"#[^\r\n]*")
_EVERY = ("DS", "CV")


@dataclass(frozen=True, slots=True)
class Suppressions:
    """Beginnings of codes that are left out: in the file, on lines (counted from 0), at and below paths."""

    everywhere: tuple[str, ...]
    lines: dict[int, tuple[str, ...]]
    paths: dict[Path, tuple[str, ...]]

    def hides(self, finding: Finding, line: int) -> bool:
        """Return whether a finding that starts on ``line`` is to be left out."""
        if finding.code.startswith(self.everywhere) or finding.code.startswith(self.lines.get(line, ())):
            return True
        lengths = range(len(finding.path) + 1) if self.paths else ()
        return any(finding.code.startswith(self.paths.get(finding.path[:length], ())) for length in lengths)


def suppressions(document: Document, comments: Iterable[tuple[int, int]] | None = None) -> Suppressions:
    """Return what a document asks to leave out; ``comments`` are those of a text that is no config itself."""
    everywhere: dict[str, None] = {}
    lines: dict[int, dict[str, None]] = {}
    text = document.text
    for start, end in document.comments if comments is None else comments:
        found = _COMMENT.search(text, start, end)
        if found is None:
            continue
        codes = _codes(found[2].split(",")) if found[2] is not None else _EVERY
        if found[1] == "ignore-file":
            everywhere |= dict.fromkeys(codes)
            continue
        line = document.lines.line_of(start)
        alone = _NOT_BLANK.search(text, document.lines.line_range(line)[0], start) is None
        lines.setdefault(line + 1 if alone else line, {}).update(dict.fromkeys(codes))
    keyed, paths = _by_key(document)
    whole = tuple({**everywhere, **dict.fromkeys(keyed)})
    return Suppressions(whole, {line: tuple(codes) for line, codes in lines.items()}, paths)


def visible(document: Document, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that the document does not ask to leave out."""
    if _WORD not in document.text:
        return list(findings)
    asked = suppressions(document)
    return [finding for finding in findings if not asked.hides(finding, document.lines.line_of(finding.start))]


def visible_in_text(document: Document, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that a script or YAML file does not ask to leave out in a comment behind ``#``."""
    if _WORD not in document.text:
        return list(findings)
    comments = [found.span() for found in _HASH.finditer(document.text)]
    asked = suppressions(document, comments)
    return [finding for finding in findings if not asked.hides(finding, document.lines.line_of(finding.start))]


def _by_key(document: Document) -> tuple[tuple[str, ...], dict[Path, tuple[str, ...]]]:
    node = document.node_at((KEY,))
    asked = node.value() if node is not None else None
    if not isinstance(asked, dict):
        return (), {}
    at = asked.get("ignore-at")
    paths: dict[Path, tuple[str, ...]] = {}
    for text, codes in at.items() if isinstance(at, dict) else ():
        try:
            paths[parse_path(str(text))] = _codes(codes)
        except PathError:
            continue
    return _codes(asked.get("ignore")), paths


def _codes(listed: object) -> tuple[str, ...]:
    if isinstance(listed, str):
        listed = listed.split(",")
    if not isinstance(listed, list):
        return ()
    return tuple(code.strip() for code in listed if isinstance(code, str) and code.strip().startswith(_EVERY))
