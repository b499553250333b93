"""Writes calls with their arguments, and changes those of a call that is there."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from dsmigrate.convert import tree
from dsmigrate.convert.forms.literal import dict_edits, spelled
from dsmigrate.convert.python_calls import EXPRESSION, Argument, Call, Script
from dsmigrate.document.textedits import TextEdit, apply
from dsmigrate.editing.python import literals

_INDENT = "    "


def spelled_call(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call with an argument on each line."""
    if not arguments:
        return f"{name}()"
    body = "".join(f"{_INDENT}{key}={_spelled(value, _INDENT)},\n" for key, value in arguments.items())
    return f"{name}(\n{body})"


def _spelled(value: object, indent: str) -> str:
    return spelled(value, indent) if isinstance(value, (dict, list)) else repr(value)


def edited(script: Script, call: Call, wanted: Mapping[str, Any], owned: Collection[str]) -> str:
    """Return the script with the arguments of ``call`` changed to ``wanted``; of ``owned`` the others are removed.

    An argument that has its value already is left as it is written; a dictionary is edited in its place. Raises
    ConvertError for a result that is not Python any more.
    """
    edits: list[TextEdit] = []
    for name, value in wanted.items():
        there = call.arguments.get(name)
        if there is None or _same(there.value, value):
            continue
        edits += _replaced(script, there, value)
    edits += [
        _without(script.text, argument)
        for argument in call.arguments.values()
        if argument.name in owned and argument.name not in wanted
    ]
    index = [one.start for one in script.calls(call.name)].index(call.start)
    script = Script(apply(script.text, edits))
    new = {name: value for name, value in wanted.items() if name not in call.arguments}
    if not new:
        return script.text
    text = apply(script.text, _added(script.text, script.calls(call.name)[index], new))
    Script(text)
    return text


def _same(one: object, other: object) -> bool:
    return one is not EXPRESSION and tree.same(one, other)


def _replaced(script: Script, there: Argument, value: object) -> list[TextEdit]:
    if isinstance(value, dict):
        start = script.value_start(there.place)
        found = next((one for one in literals(script.text) if one.start == start), None)
        if found is not None:
            return list(dict_edits(found, tree.copied(value), script.text))
    indent = _indent(script.text, there.place.start)
    return [TextEdit(there.place.start, there.place.end, _spelled(value, indent))]


def _indent(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip())]


def _without(text: str, argument: Argument) -> TextEdit:
    """Return the edit that removes an argument with its comma, and with its line where it is alone there."""
    start, end = argument.place.key_start, argument.place.end
    comma = re.compile(r"\s*,[ \t]*").match(text, end)
    end = comma.end() if comma else end
    line = text.rfind("\n", 0, start) + 1
    if not text[line:start].strip() and text[end : end + 1] in {"\n", "\r"}:
        return TextEdit(line, end + (2 if text[end : end + 2] == "\r\n" else 1), "")
    return TextEdit(start, end, "")


def _added(text: str, call: Call, new: Mapping[str, Any]) -> list[TextEdit]:
    """Return the edits that add arguments behind the last one, on lines of their own where that has one."""
    newline = "\r\n" if "\r\n" in text else "\n"
    last = max(call.arguments.values(), key=lambda argument: argument.place.end, default=None)
    if last is None:
        joined = ", ".join(f"{name}={_spelled(value, _indent(text, call.start))}" for name, value in new.items())
        return [TextEdit(call.end - 1, call.end - 1, joined)]
    comma = re.compile(r"\s*,").match(text, last.place.end)
    end = comma.end() if comma else last.place.end
    rest = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?=[\r\n])").match(text, end)
    if rest is None:
        joined = ", ".join(f"{name}={_spelled(value, _indent(text, call.start))}" for name, value in new.items())
        return [TextEdit(end, end, f" {joined}" if comma else f", {joined}")]
    indent = _indent(text, last.place.key_start)
    lines = "".join(f"{newline}{indent}{name}={_spelled(value, indent)}," for name, value in new.items())
    behind = [] if comma else [TextEdit(end, end, ",")]
    return [*behind, TextEdit(rest.end(), rest.end(), lines)]
