"""What can be folded: sections and lists over several lines, and comments."""

from __future__ import annotations

from dataclasses import dataclass

from dsmigrate.document import Array, Object
from dsmigrate.editing.view import View


@dataclass(frozen=True, slots=True)
class Fold:
    """Offsets of the first and last character that stay in view, and whether it is a comment."""

    start: int
    end: int
    is_comment: bool = False


def folds(view: View) -> tuple[Fold, ...]:
    """Return what spans more than one line; lines of comments that follow each other fold together."""
    document = view.document
    lines = document.lines
    found = [
        Fold(node.start, node.end)
        for path, _, node in document.walk()
        if isinstance(node, Object | Array) and (path or (isinstance(node, Object) and node.has_braces))
        if lines.line_of(node.start) < lines.line_of(node.end)
    ]
    block: tuple[int, int] | None = None
    for start, end in (*document.comments, (len(document.text) + 2, len(document.text) + 2)):
        if block is not None and lines.line_of(start) == lines.line_of(block[1]) + 1 and start <= len(document.text):
            block = block[0], end
            continue
        if block is not None and lines.line_of(block[0]) < lines.line_of(block[1]):
            found.append(Fold(*block, is_comment=True))
        block = start, end
    return tuple(found)
