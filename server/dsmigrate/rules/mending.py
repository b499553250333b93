"""Fixes for rules: each proposes edits of the document, worked out when somebody asks for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from dsmigrate.document import Document, EditError, Path, TextEdit, parse
from dsmigrate.document import edits as editing
from dsmigrate.rules.model import Fix

_Where = TypeVar("_Where")


class Mending(ABC, Generic[_Where]):
    """What proposes fixes of one document; ``_Where`` is how members are named."""

    def __init__(self, document: Document) -> None:
        self.document = document

    @abstractmethod
    def path_of(self, where: _Where | Path) -> Path:
        """Return the path of nodes that leads to a place."""

    def remove(self, where: _Where | Path, title: str, *, safe: bool) -> Fix:
        """Return the fix that removes a member."""
        return self.fix(title, lambda path: editing.remove(self.document, path), where, safe=safe)

    def rename(self, where: _Where | Path, name: str, title: str, *, safe: bool) -> Fix:
        """Return the fix that gives a member another key; it has no edits when that key is there already."""
        return self.fix(title, lambda path: editing.rename(self.document, path, name), where, safe=safe)

    def replace(self, where: _Where | Path, value: object, title: str, *, safe: bool) -> Fix:
        """Return the fix that sets another value instead of a member's."""
        return self.fix(title, lambda path: editing.replace(self.document, path, value), where, safe=safe)

    def move(self, where: _Where | Path, target: Path, title: str, *, safe: bool) -> Fix:
        """Return the fix that moves a member to another place; it has no edits when something is there already."""
        return self.fix(title, lambda path: editing.move(self.document, path, target), where, safe=safe)

    def insert(self, target: Path, value: object, title: str, *, safe: bool) -> Fix:
        """Return the fix that adds a key; it has no edits when it is there already."""
        return self.fix(title, lambda path: editing.insert(self.document, path, value), target, safe=safe)

    def fix(self, title: str, make: Callable[[Path], tuple[TextEdit, ...]], where: _Where | Path, *, safe: bool) -> Fix:
        """Return a fix of the edits that ``make`` gives for the path; none if it is refused, or changes nothing."""

        def edits() -> tuple[TextEdit, ...]:
            try:
                found = make(self.path_of(where))
            except EditError:
                return ()
            text = self.document.text
            return found if any(text[edit.start : edit.end] != edit.text for edit in found) else ()

        return Fix(title, edits, safe)

    def fix_all(self, title: str, steps: Iterable[Callable[[Document], tuple[TextEdit, ...]]], *, safe: bool) -> Fix:
        """Return a fix of several steps, each of which edits the result of the one before; none if one is refused."""
        steps = tuple(steps)

        def edits() -> tuple[TextEdit, ...]:
            document = self.document
            done: tuple[TextEdit, ...] = ()
            found: tuple[TextEdit, ...] = ()
            try:
                for step in steps:
                    document = _edited(document, found) if found else document
                    found = step(document)
                    done = editing.compose(self.document.text, done, found) if done else found
            except EditError:
                return ()
            return done

        return Fix(title, edits, safe)


def _edited(document: Document, edits: tuple[TextEdit, ...]) -> Document:
    if len(edits) == 1:
        return document.edit(edits[0].start, edits[0].end, edits[0].text)
    return parse(editing.apply(document.text, edits))
