"""Comments that leave a rule out: a new one on the line before, or the code added to one that is there."""

from __future__ import annotations

import re

from dsmigrate.document import Document, TextEdit, apply, parse
from dsmigrate.document.layout import line_indent

_LISTED = re.compile(r"dsmigrate:\s*(ignore(?:-file)?)\[([^\]]*)\]")


def edits(document: Document, code: str, line: int | None) -> tuple[TextEdit, ...]:
    """Return the edit that leaves ``code`` out on a line, counted from 0, or in the whole file for None.

    Empty where a comment would change what the text means, as within a string of several lines.
    """
    edit = _added(document, code, line) or _new(document, code, line)
    changed = parse(apply(document.text, [edit]))
    more = len(changed.comments) - len(document.comments)
    wanted = 0 if edit.text in {f", {code}", code} else 1
    if more != wanted or not _same_config(document, changed):
        return ()
    return (edit,)


def _added(document: Document, code: str, line: int | None) -> TextEdit | None:
    """Return the edit that adds the code to a comment which holds for the line, or for the file."""
    for start, end in document.comments:
        found = _LISTED.search(document.text[start:end])
        if found is None or (found[1] == "ignore-file") is not (line is None):
            continue
        if line is not None and line != _line_meant(document, start):
            continue
        at = start + found.end(2)
        return TextEdit(at, at, f", {code}" if found[2].strip() else code)
    return None


def _line_meant(document: Document, start: int) -> int:
    line = document.position(start).line
    alone = not document.text[document.lines.line_range(line)[0] : start].strip()
    return line + 1 if alone else line


def _new(document: Document, code: str, line: int | None) -> TextEdit:
    first = document.lines.line_range(line or 0)[0]
    first += int(first == 0 and document.has_bom)
    text = document.text
    mark = "#" if text[document.comments[0][0]] == "#" else "//"
    if line is None:
        return TextEdit(first, first, f"{mark} dsmigrate: ignore-file[{code}]{document.newline}")
    indent = line_indent(text, first)
    return TextEdit(first, first, f"{indent}{mark} dsmigrate: ignore[{code}]{document.newline}")


def _same_config(before: Document, after: Document) -> bool:
    fatal = [sum(problem.is_fatal for problem in document.problems) for document in (before, after)]
    return fatal[0] == fatal[1] and before.value() == after.value()
