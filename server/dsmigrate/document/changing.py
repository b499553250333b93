"""Another key, another value, another place for a member that is there."""

from __future__ import annotations

import re

from dsmigrate.document import layout
from dsmigrate.document.audit import check_editable, checked, with_value
from dsmigrate.document.document import Document, parse
from dsmigrate.document.errors import EditError
from dsmigrate.document.inserting import Entry, insert, insert_entry, value_tail
from dsmigrate.document.nodes import Member, Node, Object, Scalar
from dsmigrate.document.paths import Path, render_path
from dsmigrate.document.removing import remove_child
from dsmigrate.document.shapes import Style
from dsmigrate.document.spelling import Manner, Spelling, manner_of, spell, spell_key, spell_string
from dsmigrate.document.textedits import TextEdit, apply, compose

_DELIMITED = re.compile(r"[ \t]*(?:[,}\]#\r\n]|//|/\*|\Z)")
_LINE_END = re.compile(r"\r\n|\r|\n")


def rename(document: Document, path: Path, name: str) -> tuple[TextEdit, ...]:
    """Return the edit that gives the member at ``path`` the key ``name``, in the quotes it has.

    Raises EditError when there is no such member, when its object has that key already, and when the text is not one
    that DeepSpeed reads.
    """
    check_editable(document)
    parent = document.node_at(path[:-1])
    member = document.member_at(path)
    key = None if member is None else member.key
    if not isinstance(parent, Object) or member is None or key is None:
        raise EditError(f"there is no key {render_path(path)} to rename")
    if name != key.name and parent.get(name) is not None:
        raise EditError(f"{render_path((*path[:-1], name))} is there already")
    named = {
        name if child.index == member.index else str(child.name): child.node.value()
        for child in parent
        if child.node is not None
    }
    edit = TextEdit(key.start, key.end, spell_key(name, key.style))
    return checked(document, [edit], with_value(document.content, path[:-1], named))


def replace(document: Document, path: Path, value: object) -> tuple[TextEdit, ...]:
    """Return the edit that puts ``value`` (see ``insert``) in place of the value at ``path``.

    Raises EditError when there is none, and when the text is not one that DeepSpeed reads.
    """
    check_editable(document)
    node, root = document.node_at(path), document.root
    if node is None or root is None:
        raise EditError(f"there is no value {render_path(path)} to replace")
    text = document.text
    model = root if isinstance(root, Object) else None
    manner = manner_of(None, model, text) if model is not None else _plain_manner(document)
    in_lines = layout.has_line_end(text, root.start, root.end)
    new = spell(value, layout.line_indent(text, node.start), manner, in_lines=in_lines)
    end = value_tail(text, node)
    if new[-1:] not in {'"', "'", "}", "]"} and not _DELIMITED.match(text, end):
        new += ","  # without it the rest of the line would be part of the value
    plain = parse(value.text).value() if isinstance(value, Spelling) else value
    return checked(document, [TextEdit(node.start, end, new)], with_value(document.content, path, plain))


def move(document: Document, source: Path, target: Path, *, after: str | None = None) -> tuple[TextEdit, ...]:
    """Return the edits that move the member at ``source`` to ``target``, objects on the way there included.

    Its text is kept, indented as its new place is; the comment behind it on its line goes with it. Raises EditError as
    ``insert`` and ``remove`` do, and for a target within the source.
    """
    check_editable(document)
    member, parent = document.member_at(source), document.node_at(source[:-1])
    if member is None or member.node is None or not isinstance(parent, Object):
        raise EditError(f"there is no key {render_path(source)} to move")
    if target[: len(source)] == source:
        raise EditError(f"{render_path(source)} cannot be moved into itself")
    taken = remove_child(document.text, parent, member.index)
    between = parse(apply(document.text, taken))
    entry = _entry(document, parent, member, target, taken)
    given = _insertion(between, target, entry, after)
    expected = with_value(between.content, target, member.node.value()) if between.node_at(target[:-1]) else None
    edits = compose(document.text, taken, given)
    if expected is None:
        expected = parse(apply(between.text, insert(between, target, member.node.value()))).value()
    return checked(document, edits, expected)


def _insertion(between: Document, target: Path, entry: Entry, after: str | None) -> list[TextEdit]:
    """Add ``entry`` where its object is, or else make the objects on the way first."""
    place = between.node_at(target[:-1])
    if isinstance(place, Object):
        if place.get(entry.name) is not None:
            raise EditError(f"{render_path(target)} is there already")
        return insert_entry(between, place, entry, after)
    if between.root is None:
        text = between.text
        before = "" if layout.line_start(text, len(text)) == len(text) else between.newline
        braces = [TextEdit(len(text), len(text), f"{before}{{}}{between.newline}")]
        inside = _insertion(parse(apply(text, braces)), target, entry, after)
        return list(compose(text, braces, inside))
    made = insert(between, target[:-1], {})
    filled = parse(apply(between.text, made))
    place = filled.node_at(target[:-1])
    if not isinstance(place, Object):
        raise EditError(f"{render_path(target[:-1]) or 'the root'} is not an object")
    return list(compose(between.text, made, insert_entry(filled, place, entry)))


def _entry(document: Document, parent: Object, member: Member, target: Path, taken: list[TextEdit]) -> Entry:
    node, key = member.node, member.key
    name = target[-1]
    if node is None or key is None or not isinstance(name, str):
        raise EditError(f"{render_path(target)} names no key")
    text = document.text
    comments = tuple(
        text[start:end]
        for start, end in parent.comments
        if not member.start < start < node.start and any(edit.start <= start < edit.end for edit in taken)
    )
    between = text[key.end : node.start]
    old = layout.line_indent(text, member.start)

    def spelled(indent: str, manner: Manner, in_lines: bool) -> str:  # noqa: ARG001, FBT001
        return _moved(node, old, indent)

    kept_key = key.raw if key.name == name and (key.style is not Style.BARE or key.raw == name) else None
    kept_colon = between if between.strip(" \t:") else None
    return Entry(name, spelled, kept_key, kept_colon, comments)


def _moved(node: Node, old: str, new: str) -> str:
    """Return the text of a value for lines indented by ``new`` instead of ``old``."""
    if isinstance(node, Scalar):
        return spell_string(str(node.value())) if node.style is Style.BARE else node.raw
    raw = node.raw
    if "'''" in raw:  # the value of such a string depends on its column
        return raw
    ends = _LINE_END.findall(raw)
    lines = _LINE_END.split(raw)
    moved = [new + line[len(old) :] if line.startswith(old) else line for line in lines[1:]]
    return lines[0] + "".join(end + line for end, line in zip(ends, moved, strict=True))


def _plain_manner(document: Document) -> Manner:
    return Manner(Style.DOUBLE, ": ", document.newline, document.indent, commas=True)
