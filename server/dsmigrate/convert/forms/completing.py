"""What could be written in the ``deepspeed_config`` of the YAML of ``accelerate launch``: its fields and their values.

The text is read line by line, as it is half typed while somebody asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dsmigrate.convert.facts import MISSING, Field, fields
from dsmigrate.convert.forms.fields import DEVICES
from dsmigrate.knowledge import Key, Knowledge
from dsmigrate.knowledge.wording import value_name

BLOCK = "deepspeed_config"
_LINE = re.compile(r"(?P<indent>[ \t]*)(?P<key>[\w.-]*)(?P<colon>[ \t]*:[ \t]*)?(?P<value>[^#\r\n]*)")
_BLOCK = re.compile(rf"[\"']?{BLOCK}[\"']?[ \t]*:[ \t]*(?:#.*)?\r?$")


@dataclass(frozen=True, slots=True)
class Offer:
    """A field or a value: what to write from ``start`` to ``end``, what it does, and the path of DeepSpeed's key."""

    label: str
    text: str
    start: int
    end: int
    detail: str
    path: str
    is_value: bool


def offers(text: str, offset: int, known: Knowledge) -> list[Offer]:
    """Return what could be written at ``offset``, in the order in which ``accelerate config`` asks."""
    start = text.rfind("\n", 0, offset) + 1
    line = _LINE.match(text, start)
    block = _block(text, start)
    if line is None or block is None or not line["indent"] or line.start("key") > offset:
        return []
    if line["colon"] is None or offset <= line.end("key"):
        if line["colon"] is None and line["value"].strip():
            return []
        there = set(re.findall(r"(?m)^[ \t]+([\w.-]+)[ \t]*:", block)) - {line["key"]}
        return list(_keys(line.start("key"), line.end("key"), there, known, bare=line["colon"] is None))
    field = fields().get(line["key"])
    if field is None or offset < line.end("colon"):
        return []
    end = line.start("value") + len(line["value"].rstrip())
    return list(_values(field, line.end("colon"), max(end, line.end("colon")), known))


def _block(text: str, start: int) -> str | None:
    """Return the lines of the block that the line at ``start`` belongs to; None where it is in none."""
    lines = text[:start].splitlines()
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number]
        if line.strip() and not line[0].isspace() and not line.startswith("#"):
            if not _BLOCK.match(line):
                return None
            rest = re.match(r"(?:[ \t].*|\r?|#.*)(?:\n|$)(?:(?:[ \t].*|\r?|#.*)(?:\n|$))*", text[start:])
            return "\n".join([*lines[number + 1 :], rest[0] if rest else ""])
    return None


def _keys(start: int, end: int, there: set[str], known: Knowledge, *, bare: bool) -> Iterator[Offer]:
    for name, field in fields().items():
        if name not in there:
            key = known.key(field.path)
            detail = "" if key is None else key.summary
            yield Offer(name, f"{name}: " if bare else name, start, end, detail, ".".join(field.path), is_value=False)


def _values(field: Field, start: int, end: int, known: Knowledge) -> Iterator[Offer]:
    key = known.key(field.path)
    for value in _written(field, key):
        means = "" if key is None else key.values.get(value_name(value), "")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        yield Offer(text, text, start, end, means, ".".join(field.path), is_value=True)


def _written(field: Field, key: Key | None) -> Iterator[object]:
    if field.type == "device":
        yield from DEVICES
    elif field.type == "boolean":
        yield from (True, False)
    elif key is not None and key.enum:
        yield from key.enum
    elif field.absent is not MISSING and field.absent is not None:
        yield field.absent
