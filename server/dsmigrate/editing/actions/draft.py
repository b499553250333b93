"""Several changes of one text, each made to the result of the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dsmigrate.document import Document, Object, Path, TextEdit
from dsmigrate.document import edits as editing
from dsmigrate.document.audit import check_editable
from dsmigrate.document.errors import EditError
from dsmigrate.languages import say

Edits = tuple[TextEdit, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a document, and what it does in a sentence, "" where another step tells it."""

    make: Callable[[Document], Edits]
    told: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """A document as it became, the edits of the ``original`` that lead to it, and what they do.

    ``unknown`` holds the offsets of values that stand for expressions of a script, ``unknown_before`` those of the
    original.
    """

    original: Document
    document: Document
    unknown_before: frozenset[int] = frozenset()
    unknown: frozenset[int] = frozenset()
    edits: Edits = ()
    done: tuple[str, ...] = ()

    def after(self, steps: Iterable[Step]) -> Draft:
        """Return the draft with more steps made; raises EditError when the text does not allow one of them."""
        draft = self
        for step in steps:
            draft = draft.with_edits(step.make(draft.document), step.told)
        return draft

    def with_edits(self, edits: Edits, told: str = "") -> Draft:
        """Return the draft with edits of its present document made."""
        done = (*self.done, told) if told else self.done
        document = self.document
        for edit in reversed(sorted(edits, key=lambda edit: (edit.start, edit.end))):  # noqa: C413 - keeps equal places in order
            document = document.edit(edit.start, edit.end, edit.text)
        unknown = _shifted(self.unknown, edits)
        whole = editing.compose(self.original.text, self.edits, edits) if edits else self.edits
        return Draft(self.original, document, self.unknown_before, unknown, whole, done)


def started(document: Document, unknown: frozenset[int] = frozenset()) -> Draft:
    """Return the draft of a document that nothing was done to yet."""
    return Draft(document, document, unknown, unknown)


def why_not(document: Document) -> str:
    """Return why a text cannot be edited, "" when it can."""
    try:
        check_editable(document)
    except EditError as error:
        return str(error)
    if document.root is not None and not isinstance(document.root, Object):
        return say("the config is not an object")
    if document.duplicates:
        return say("the text cannot be edited before no key occurs twice in an object")
    return ""


def remove(path: Path, told: str = "") -> Step:
    """Return the step that takes a member out."""
    return Step(lambda document: editing.remove(document, path), told)


def put(path: Path, value: object, told: str = "") -> Step:
    """Return the step that gives a key a value, whether it is there or not; nothing is done where it has it."""

    def make(document: Document) -> Edits:
        node = document.node_at(path)
        if node is None:
            return editing.insert(document, path, value)
        there = node.value()
        return () if there == value and type(there) is type(value) else editing.replace(document, path, value)

    return Step(make, told)


def rename(path: Path, name: str, told: str = "") -> Step:
    """Return the step that gives a member another key."""
    return Step(lambda document: editing.rename(document, path, name), told)


def move(path: Path, target: Path, told: str = "") -> Step:
    """Return the step that moves a member to another place."""
    return Step(lambda document: editing.move(document, path, target), told)


def _shifted(offsets: frozenset[int], edits: Edits) -> frozenset[int]:
    """Return where offsets are after edits; one within what was replaced is gone."""
    found = set()
    for offset in offsets:
        if not any(edit.start <= offset < edit.end for edit in edits):
            found.add(offset + sum(len(edit.text) - edit.end + edit.start for edit in edits if edit.end <= offset))
    return frozenset(found)
