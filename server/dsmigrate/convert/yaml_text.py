"""Writing YAML: values as text, and changes of a file that leave every other line alone."""

from __future__ import annotations

import re

from dsmigrate.convert import tree
from dsmigrate.convert.model import ConvertError
from dsmigrate.convert.yaml_tree import Entry, read
from dsmigrate.document.numbers import in_yaml
from dsmigrate.document.textedits import TextEdit, apply
from dsmigrate.languages import say

_PLAIN = re.compile(r"[A-Za-z_/][\w./-]*(?:,[\w./-]+)*")
_WORDS = re.compile(r"(?i)y|n|yes|no|on|off|true|false|null|none")


def spell(value: object) -> str:
    """Return a scalar as YAML 1.1 reads it back; a word that would be true or false there is quoted."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return in_yaml(value)
    text = str(value)
    if _WORDS.fullmatch(text):
        return f"'{text}'"
    return text if _PLAIN.fullmatch(text) else tree.dumped(text)


def fresh(top: dict[str, object]) -> str:
    """Return a new file; values are scalars, or mappings of scalars."""
    lines: list[str] = []
    for name, value in top.items():
        if isinstance(value, dict):
            lines.append(f"{name}:" if value else f"{name}: {{}}")
            lines += [f"  {key}: {spell(inner)}" for key, inner in value.items()]
        else:
            lines.append(f"{name}: {spell(value)}")
    return "".join(f"{line}\n" for line in lines)


def merged(text: str, wanted: dict[str, object], gone: dict[str, set[str]]) -> str:
    """Return ``text`` with the values of ``wanted`` (as for ``fresh``), and without the keys of ``gone``.

    ``gone`` names keys to remove by the mapping that they stand in, "" for the top. Comments, order and whatever else
    the file holds stay. Raises ConvertError for a file that is not YAML, or whose mappings stand between braces.
    """
    root = read(text)
    if not root.is_block and root.entries:
        raise ConvertError.at(say("the file stands between braces; write it in lines to have it edited"), text, 0)
    edits: list[TextEdit] = []
    added: list[str] = []
    newline = "\r\n" if "\r\n" in text else "\n"
    for name, value in wanted.items():
        there = root.get(name)
        if there is None:
            added += fresh({name: value}).splitlines()
        elif isinstance(value, dict):
            edits += _block(text, there, value, gone.get(name, set()), newline)
        elif not tree.same(there.value, value):
            edits.append(TextEdit(there.place.start, there.place.end, _spaced(text, there, spell(value))))
    edits += [_without(text, entry) for entry in root.entries or () if entry.name in gone.get("", set())]
    if added:
        before = "" if not text or text.endswith(("\n", "\r")) else newline
        edits.append(TextEdit(len(text), len(text), before + "".join(f"{line}{newline}" for line in added)))
    return apply(text, edits)


def _block(text: str, there: Entry, wanted: dict[str, object], gone: set[str], newline: str) -> list[TextEdit]:
    if there.entries is None or not there.entries:
        inner = "".join(f"{newline}  {key}: {spell(value)}" for key, value in wanted.items()) or " {}"
        return [TextEdit(there.place.start, there.place.end, inner)]
    if not there.is_block:
        message = say("{name} stands between braces; write it in lines to have it edited", name=there.name)
        raise ConvertError.at(message, text, there.place.start)
    edits = [_without(text, entry) for entry in there.entries if entry.name in gone and entry.name not in wanted]
    first = there.entries[0]
    indent = " " * (first.place.key_start - _line_start(text, first.place.key_start))
    added = ""
    for key, value in wanted.items():
        entry = there.get(key)
        if entry is None:
            added += f"{newline}{indent}{key}: {spell(value)}"
        elif not tree.same(entry.value, value):
            edits.append(TextEdit(entry.place.start, entry.place.end, _spaced(text, entry, spell(value))))
    if added:
        end = _line_end(text, max(entry.place.end for entry in there.entries))
        edits.append(TextEdit(end, end, added))
    if not wanted and len(edits) == len(there.entries):
        edits.append(TextEdit(there.place.key_end + 1, there.place.key_end + 1, " {}"))
    return edits


def _spaced(text: str, entry: Entry, value: str) -> str:
    """Return a value with a blank before it where it takes the place of nothing (``key:``)."""
    return value if entry.place.start < entry.place.end or text[entry.place.start - 1] == " " else f" {value}"


def _without(text: str, entry: Entry) -> TextEdit:
    """Return the edit that removes an entry with its lines."""
    start, end = _line_start(text, entry.place.key_start), _line_end(text, entry.place.end)
    while end < len(text) and text[end] in "\r\n":
        end += 1
        if text[end - 1] == "\n":
            break
    return TextEdit(start, end, "")


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def _line_end(text: str, offset: int) -> int:
    found = re.compile(r"[\r\n]|\Z").search(text, offset)
    return found.start() if found else len(text)
