"""Configs at a moment of being typed: a readable text with something half written at one place."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.document import Array, Document, Member, Object, Path, parse
from dsmigrate.knowledge import Knowledge

_LINE = "\n"


@dataclass(frozen=True, slots=True)
class Moment:
    """A text with the cursor at ``offset``; ``before`` is the text without what is being typed there.

    What is wrong with the rest of ``whole``, the config that it was made of, is nobody's fault; ``path`` leads to the
    member that is being typed.
    """

    text: str
    offset: int
    before: str
    kind: str
    whole: str
    path: Path


def moment(rng: random.Random, text: str, known: Knowledge) -> Moment | None:
    """Return a moment of typing in a readable ``text``; None where the dice found no place."""
    document = parse(text)
    make = rng.choice(_MAKERS)
    return make(rng, document, known)


def _objects(document: Document) -> list[tuple[Path, Object]]:
    return [(path, node) for path, _, node in document.walk() if isinstance(node, Object)]


def _members(document: Document) -> list[tuple[Path, Member]]:
    return [
        (path, member)
        for path, member, node in document.walk()
        if member is not None and member.key is not None and node is not None and member.colon is not None
    ]


def _untouched(rng: random.Random, document: Document, _: Knowledge) -> Moment | None:
    """Put the cursor anywhere."""
    return Moment(document.text, rng.randint(0, len(document.text)), document.text, "untouched", document.text, ())


def _new_key(rng: random.Random, document: Document, known: Knowledge) -> Moment | None:
    """Start a key in an object: before, between and behind its members."""
    text = document.text
    path, chosen = rng.choice(_objects(document) or [((), None)])
    if chosen is None or not chosen.has_braces:
        return None
    at = rng.randint(0, len(chosen))
    start = chosen.inner_start if at == 0 else chosen.member(at - 1).end
    if at > 0:
        comma = chosen.comma(at - 1)
        start = start if comma is None else comma + 1
        if comma is None and at < len(chosen):
            return None
    gap = rng.choice(["\n", "\n    ", "\n  ", " "])
    if at > 0 and chosen.comma(at - 1) is None and gap == " ":
        gap = "  "
    piece, back = _piece(rng, rng.choice([*_names(known, path), "zz"]))
    end = rng.choice(["", "", "\n", " "]) if at == len(chosen) else rng.choice(["", "\n", " "])
    whole = f"{text[:start]}{gap}{piece}{end}{text[start:]}"
    before = f"{text[:start]}{gap}{end}{text[start:]}"
    return Moment(whole, start + len(gap) + len(piece) - back, before, "new key", text, ())


def _names(known: Knowledge, path: Path) -> list[str]:
    return [key.name for key in known.children(known.canonical(path) if path else "")] or ["lr", "enabled"]


def _piece(rng: random.Random, name: str) -> tuple[str, int]:
    """Return what of a name is typed, and how far before its end the cursor stands."""
    typed = name[: rng.randint(0, len(name))]
    return rng.choice([("", 0), (f'"{typed}', 0), (f'"{typed}"', 1), (f'"{typed}"', 0), (typed, 0)])


def _key_again(rng: random.Random, document: Document, known: Knowledge) -> Moment | None:
    """Type the key of a member anew, with its value still there."""
    found = _members(document)
    if not found:
        return None
    path, member = rng.choice(found)
    key, text = member.key, document.text
    assert key is not None
    name = rng.choice([key.name, rng.choice(_names(known, path[:-1]))])
    typed = name[: rng.randint(0, len(name))]
    whole = f'{text[: key.start]}"{typed}"{text[key.end :]}'
    return Moment(whole, key.start + 1 + len(typed), whole, "key again", text, path)


def _without(document: Document, member: Member) -> str | None:
    """Return the text without a member and its comma."""
    text, start, end = document.text, member.start, member.end
    if member.comma is not None:
        end = member.comma + 1
    left = text[:start] + text[end:]
    return left if parse(left).is_readable else None


def _value_again(rng: random.Random, document: Document, _: Knowledge) -> Moment | None:
    """Type the value of a member anew."""
    found = [(path, member) for path, member in _members(document) if not isinstance(member.node, Object | Array)]
    if not found:
        return None
    path, member = rng.choice(found)
    node, text = member.node, document.text
    assert node is not None
    before = _without(document, member)
    if before is None:
        return None
    raw = node.raw
    words = [
        '"',
        '""',
        "tr",
        '"au',
        '"auto"',
        "",
        "",
        "1",
        raw[: rng.randint(0, len(raw))],
        f'"{raw.strip(chr(34))[:2]}',
    ]
    typed = rng.choice(words)
    offset = node.start + len(typed) - (typed == '""')
    return Moment(f"{text[: node.start]}{typed}{text[node.end :]}", offset, before, "value again", text, path)


def _only_key(rng: random.Random, document: Document, _: Knowledge) -> Moment | None:
    """Take the value of a member away, with or without its colon and comma."""
    found = _members(document)
    if not found:
        return None
    path, member = rng.choice(found)
    key, text = member.key, document.text
    before = _without(document, member)
    if key is None or before is None or member.colon is None:
        return None
    cut = rng.choice([key.end, member.colon + 1, member.colon + 1])
    end = member.end if member.comma is None or rng.random() < 0.7 else member.comma + 1
    blank = rng.choice(["", " "]) if cut > key.end else ""
    whole = f"{text[:cut]}{blank}{text[end:]}"
    offset = rng.choice([cut + len(blank), key.end - 1, key.end])
    return Moment(whole, offset, before, "only key", text, path)


def _prefix(rng: random.Random, document: Document, known: Knowledge) -> Moment | None:
    """Cut the text behind a member or brace, close what is open, and start something there."""
    text = document.text
    places = [
        *(node.inner_start for _, node in _objects(document) if node.has_braces),
        *(member.comma + 1 for _, member in _members(document) if member.comma is not None),
    ]
    if not places:
        return None
    cut = rng.choice(places)
    open_ones = [node for _, _, node in document.walk() if isinstance(node, Object | Array) and _holds(node, cut)]
    closing = "".join("\n" + ("}" if isinstance(node, Object) else "]") for node in reversed(open_ones))
    gap = rng.choice(["\n", "\n    ", " ", ""])
    piece, back = _piece(rng, rng.choice(_names(known, document.place_at(cut).path)))
    before = text[:cut] + gap + closing
    return Moment(text[:cut] + gap + piece + closing, cut + len(gap) + len(piece) - back, before, "prefix", text, ())


def _holds(node: Object | Array, offset: int) -> bool:
    braces = not isinstance(node, Object) or node.has_braces
    return braces and node.start < offset < node.end


_MAKERS = (_untouched, _new_key, _new_key, _key_again, _value_again, _value_again, _only_key, _prefix, _prefix)


def moments(seed: int, texts: list[str], known: Knowledge) -> Iterator[tuple[random.Random, Moment]]:
    """Yield moments of typing in texts without end, each with dice of its own."""
    rng = random.Random(seed)  # noqa: S311 - nothing here is secret
    while True:
        own = random.Random(rng.random())  # noqa: S311 - nothing here is secret
        found = moment(own, rng.choice(texts), known)
        if found is not None:
            yield own, found
