"""How new keys and values are spelled, in the manner of the text around them."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace

from dsmigrate.document import layout
from dsmigrate.document.errors import EditError
from dsmigrate.document.nodes import Member, Object
from dsmigrate.document.numbers import in_json
from dsmigrate.document.shapes import Style
from dsmigrate.languages import say

_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_COLON = re.compile(r"[ \t]*:[ \t]*")
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Spelling:
    """A value given as its own text, such as ``5e8``, instead of as an object of Python."""

    text: str


@dataclass(frozen=True, slots=True)
class Manner:
    """How members are written: the style of keys, what stands around colons, line end, indent of a level, commas."""

    key_style: Style
    colon: str
    newline: str
    unit: str
    commas: bool


def manner_of(siblings: Object | None, root: Object, text: str) -> Manner:
    """Return the manner of the last member of ``siblings``, or of the root's first where there is none."""
    models = (siblings.members[-1:] if siblings is not None else []) or root.members[:1]
    style, colon = Style.DOUBLE, ": "
    for model in models:
        key, value = model.key, model.node
        if key is not None and value is not None:
            style = key.style
            between = text[key.end : value.start]
            colon = between if _COLON.fullmatch(between) else colon
    return Manner(style, colon, layout.newline_of(text), layout.indent_of(root, text), commas=True)


def spell_key(name: str, style: Style) -> str:
    """Return the text of a key; in double quotes where the style does not allow the name."""
    if style is Style.BARE and _BARE_NAME.fullmatch(name):
        return name
    text = spell_string(name)
    if style is Style.SINGLE and "'" not in text and "\\" not in text:
        return f"'{text[1:-1]}'"
    return text


def spell_string(value: str) -> str:
    """Return a JSON string; lone surrogates, which no file can hold, as escapes."""
    return _SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def spell(value: object, indent: str, manner: Manner, *, in_lines: bool) -> str:
    """Return the text of ``value`` for a line that is indented by ``indent``.

    With ``in_lines`` objects, and arrays that hold containers, take a line for each entry. Raises EditError for what
    has no spelling: NaN, infinities, other types.
    """
    try:
        return _spell(value, indent, manner, in_lines=in_lines)
    except RecursionError:
        raise EditError(say("the value is nested too deeply to be written")) from None


def _spell(value: object, indent: str, manner: Manner, *, in_lines: bool) -> str:
    if isinstance(value, Spelling):
        return value.text
    if isinstance(value, str):
        return spell_string(value)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        if not math.isfinite(value):
            raise EditError(say("the value {value} cannot be written to a config", value=repr(value)))
        return in_json(value)
    inner = indent + manner.unit
    if isinstance(value, dict):
        plain = replace(manner, commas=True)
        entries = [
            f"{spell_key(str(name), manner.key_style)}{manner.colon}{_spell(item, inner, plain, in_lines=in_lines)}"
            for name, item in value.items()
        ]
        return _bracketed("{}", entries, indent, manner, in_lines=in_lines)
    if isinstance(value, list | tuple):
        entries = [_spell(item, inner, manner, in_lines=in_lines) for item in value]
        nested = any(isinstance(item, dict | list | tuple) and item for item in value)
        return _bracketed("[]", entries, indent, manner, in_lines=in_lines and nested)
    raise EditError(say("a value of type {name} cannot be written to a config", name=type(value).__name__))


def _bracketed(brackets: str, entries: list[str], indent: str, manner: Manner, *, in_lines: bool) -> str:
    if not entries:
        return brackets
    if not in_lines:
        return f"{brackets[0]}{', '.join(entries)}{brackets[1]}"
    line = f"{manner.newline}{indent}"
    body = f",{line}{manner.unit}".join(entries)
    return f"{brackets[0]}{line}{manner.unit}{body}{line}{brackets[1]}"


def is_quoteless(member: Member) -> bool:
    """Tell whether the value of a member takes the rest of its line, so that no comma can follow it there."""
    node = member.node
    return node is not None and getattr(node, "style", None) is Style.BARE
