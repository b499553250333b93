"""A new member: where it goes, and what has to stand around it there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from dsmigrate.document import layout
from dsmigrate.document.audit import check_editable, checked, with_value
from dsmigrate.document.document import Document, parse
from dsmigrate.document.errors import EditError
from dsmigrate.document.nodes import Array, Member, Node, Object
from dsmigrate.document.paths import Path, render_path
from dsmigrate.document.spelling import Manner, Spelling, is_quoteless, manner_of, spell, spell_key
from dsmigrate.document.textedits import TextEdit
from dsmigrate.languages import say

_BLANKS = re.compile(r"[ \t]*")
_ANY_BLANKS = re.compile(r"[^\S\r\n]*")


@dataclass(frozen=True, slots=True)
class Entry:
    """A member to write.

    ``spell`` returns the text of the value from the indent of its line, the manner, and whether to use several lines;
    ``key`` and ``colon`` are the texts of the key, and of what stands between it and the value, where they are to be
    kept; ``comments`` are to stand behind the member.
    """

    name: str
    spell: Callable[[str, Manner, bool], str]
    key: str | None = None
    colon: str | None = None
    comments: tuple[str, ...] = ()

    def text(self, indent: str, manner: Manner, *, in_lines: bool) -> str:
        """Return the text of the member, without a comma."""
        key = spell_key(self.name, manner.key_style) if self.key is None else self.key
        colon = manner.colon if self.colon is None else self.colon
        return f"{key}{colon}{self.spell(indent, manner, in_lines)}"

    def after(self, *, in_lines: bool) -> str:
        """Return the comments with blanks before them; only the last of a line may be one that takes all the rest."""
        last = len(self.comments) - 1 if in_lines else None
        return "".join(
            f" {comment if number == last else _as_block(comment)}" for number, comment in enumerate(self.comments)
        )


def _as_block(comment: str) -> str:
    """Return a comment in the form that lets others follow on its line."""
    return comment if comment.startswith("/*") else f"/* {comment.lstrip('#/ ').replace('*/', '* /')} */"


def insert(document: Document, path: Path, value: object, *, after: str | None = None) -> tuple[TextEdit, ...]:
    """Return the edits that add a member at ``path`` with ``value``, objects on the way there included.

    ``value`` is made of dictionaries, lists and scalars, or a ``Spelling``. The member comes behind the one named
    ``after`` in its object, or last. Indents, line ends, quotes and commas follow the text. Raises EditError when the
    path is taken, leads through something that is no object, names no key, when ``after`` is not there, and when the
    text is not one that DeepSpeed reads.
    """
    check_editable(document)
    names = [part for part in path if isinstance(part, str)]
    if not names or (len(names) != len(path) and not isinstance(path[-1], str)):
        raise EditError(f"{render_path(path)!r} names no key that could be added")
    root = document.root
    if root is None:
        return _into_nothing(document, path, value)
    target, rest = _deepest(document, path)
    if after is not None and (len(rest) > 1 or target.get(after) is None):
        raise EditError(f"there is no key {after!r} to insert behind")
    plain = parse(value.text).value() if isinstance(value, Spelling) else value
    whole: object = value
    for name in reversed(rest[1:]):
        plain, whole = {name: plain}, {name: whole}
    entry = Entry(rest[0], lambda indent, manner, in_lines: spell(whole, indent, manner, in_lines=in_lines))
    expected = with_value(document.content, path[: len(path) - len(rest) + 1], plain)
    return checked(document, insert_entry(document, target, entry, after), expected)


def _into_nothing(document: Document, path: Path, value: object) -> tuple[TextEdit, ...]:
    text = document.text
    whole: object = value
    plain = parse(value.text).value() if isinstance(value, Spelling) else value
    for part in reversed(path):
        whole, plain = {str(part): whole}, {str(part): plain}
    braces = parse("{}").root
    if not isinstance(braces, Object):
        raise EditError("an empty object cannot be read")
    manner = manner_of(None, braces, text)
    body = spell(whole, "", manner, in_lines=True)
    before = "" if layout.line_start(text, len(text)) == len(text) else manner.newline
    return checked(document, [TextEdit(len(text), len(text), f"{before}{body}{manner.newline}")], plain)


def _deepest(document: Document, path: Path) -> tuple[Object, tuple[str, ...]]:
    """Return the last object on ``path`` that is there, and the keys that are not."""
    for size in range(len(path)):
        found = document.node_at(path[: size + 1])
        if found is not None and size + 1 < len(path):
            if not isinstance(found, Object | Array):
                raise EditError(
                    say("{path} is {text}, not an object", path=render_path(path[: size + 1]), text=found.raw[:40])
                )
            continue
        if found is not None:
            raise EditError(f"{render_path(path)} is there already")
        target = document.node_at(path[:size])
        rest = path[size:]
        if not isinstance(target, Object) or not all(isinstance(part, str) for part in rest):
            raise EditError(say("{path} is not an object", path=render_path(path[:size]) or say("the root")))
        return target, tuple(str(part) for part in rest)
    raise EditError("the root is there already")


def insert_entry(document: Document, target: Object, entry: Entry, after: str | None = None) -> list[TextEdit]:
    """Return the edits that add ``entry`` to ``target``, unchecked."""
    text, root = document.text, document.root
    assert isinstance(root, Object | Array)  # noqa: S101 - there is an object in it
    model = root if isinstance(root, Object) else target
    manner = replace(manner_of(target, model, text), commas=_uses_commas(document, target))
    if not len(target):
        return _into_empty(text, target, entry, manner, spread=root == target or _is_spread(text, root))
    found = None if after is None else target.get(after)
    anchor = target.member(len(target) - 1 if found is None else found.index)
    following = target.member(anchor.index + 1) if anchor.index + 1 < len(target) else None
    gap = _Gap(text, target, anchor, following)
    return [_inline(gap, entry, manner)] if gap.is_inline else _on_a_line(gap, entry, manner)


def _is_spread(text: str, root: Object | Array) -> bool:
    return layout.has_line_end(text, root.start, root.end)


def _into_empty(text: str, target: Object, entry: Entry, manner: Manner, *, spread: bool) -> list[TextEdit]:
    start, end = target.inner_start, target.inner_end
    comments = target.comments
    outer = layout.line_indent(text, target.start)
    indent = outer + manner.unit
    if not spread:
        at = comments[-1][1] if comments else start
        blank = text[at:end]
        body = entry.text(outer, manner, in_lines=False) + entry.after(in_lines=False)
        return [TextEdit(at, end, f"{blank or (' ' if comments else '')}{body}{blank}")]
    body = f"{manner.newline}{indent}{entry.text(indent, manner, in_lines=True)}{entry.after(in_lines=True)}"
    if not comments:
        return [TextEdit(start, end, f"{body}{manner.newline}{outer}")]
    at = comments[-1][1]
    closing = "" if layout.has_line_end(text, at, end) else f"{manner.newline}{outer}"
    return [TextEdit(at, at, body + closing)]


@dataclass(frozen=True, slots=True)
class _Gap:
    """The place of a new member: behind ``anchor``, before ``following`` if that is not None, in ``target``."""

    text: str
    target: Object
    anchor: Member
    following: Member | None

    @property
    def behind(self) -> int:
        """The offset behind the anchor and its comma."""
        return self.end if self.anchor.comma is None else self.anchor.comma + 1

    @property
    def end(self) -> int:
        """The offset where the anchor's comma could come."""
        return value_tail(self.text, self.anchor)

    @property
    def is_inline(self) -> bool:
        """Whether the new member shares its line with its neighbours."""
        text, anchor = self.text, self.anchor
        if is_quoteless(anchor):
            return False
        if self.following is not None:
            return not layout.has_line_end(text, self.behind, self.following.start)
        return (
            self.target.has_braces
            and not layout.starts_line(text, anchor.start)
            and not layout.has_line_end(text, anchor.end, self.target.end)
        )


def _inline(gap: _Gap, entry: Entry, manner: Manner) -> TextEdit:
    text, target, anchor, following = gap.text, gap.target, gap.anchor, gap.following
    body = entry.text(layout.line_indent(text, anchor.start), manner, in_lines=False)
    remark = entry.after(in_lines=False)
    if following is not None:
        return TextEdit(following.start, following.start, f"{body},{remark}{_blank(text, gap.behind, following.start)}")
    if anchor.comma is not None:
        return TextEdit(anchor.comma + 1, anchor.comma + 1, f" {body},{remark}")
    before = target.member(anchor.index - 1) if anchor.index else None
    blank = " " if before is None or before.comma is None else _blank(text, before.comma + 1, anchor.start)
    return TextEdit(gap.end, gap.end, f",{blank}{body}{remark}")


def _blank(text: str, start: int, end: int) -> str:
    """Return the blanks between two offsets, one blank where something else is there."""
    between = text[start:end]
    return " " if between.strip(" \t") else between


def _on_a_line(gap: _Gap, entry: Entry, manner: Manner) -> list[TextEdit]:
    text, target, anchor = gap.text, gap.target, gap.anchor
    indent = _indent_in(text, target, manner)
    own = manner.commas if gap.following is not None else anchor.comma is not None
    edits = []
    if gap.following is None and anchor.comma is None and manner.commas and not is_quoteless(anchor):
        edits.append(TextEdit(gap.end, gap.end, ","))
    at = line_tail(text, target, gap.behind)
    body = entry.text(indent, manner, in_lines=True)
    remark = entry.after(in_lines=True)
    closing = ""
    if remark and text[at : at + 1] not in {"", "\r", "\n"}:
        closing = manner.newline + layout.line_indent(text, target.start)
    edits.append(TextEdit(at, at, f"{manner.newline}{indent}{body}{',' * own}{remark}{closing}"))
    return edits


def value_tail(text: str, found: Member | Node) -> int:
    """Return the end of a member or value, with the blanks behind it that would be part of a string without quotes."""
    blanks = _ANY_BLANKS.match(text, found.end)
    return blanks.end() if blanks and blanks[0].strip(" \t") else found.end


def line_tail(text: str, container: Object | Array, offset: int) -> int:
    """Return where the comments behind ``offset`` on its line end; only blanks and comments of ``container`` pass."""
    comments = {start: end for start, end in container.comments if start >= offset}
    at = offset
    while True:
        found = _BLANKS.match(text, at)
        start = found.end() if found else at
        end = comments.get(start)
        if end is None or layout.has_line_end(text, start, end):
            return at
        at = end


def _indent_in(text: str, target: Object, manner: Manner) -> str:
    for member in target:
        if layout.starts_line(text, member.start):
            return layout.line_indent(text, member.start)
    if not target.has_braces:
        return layout.line_indent(text, target.start)
    return layout.line_indent(text, target.start) + manner.unit


def _uses_commas(document: Document, target: Object) -> bool:
    """Tell whether members are separated by commas: in ``target``, or where it has but one, in most of the text."""
    if len(target) > 1:
        return any(target.comma(index) is not None for index in range(len(target) - 1))
    if target.comma(-1) is not None if len(target) else False:
        return True
    without = sum(item.code.value == "missing-comma" for item in document.problems)
    return not without or _commas(document) > without


def _commas(document: Document) -> int:
    count = 0
    waiting = [document.root]
    while waiting:
        found = waiting.pop()
        if not isinstance(found, Object | Array):
            continue
        count += sum(found.comma(index) is not None for index in range(len(found)))
        for child in found:
            value = child.node if isinstance(child, Member) else child
            waiting.append(value)
    return count
