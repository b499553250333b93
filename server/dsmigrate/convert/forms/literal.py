"""Reads and writes a dictionary in a script, through the mask that makes a config of it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from dsmigrate.convert import tree
from dsmigrate.convert.forms.deepspeed import edits_to, places_of
from dsmigrate.convert.model import Config, ConvertError, Form, Settings
from dsmigrate.document import Path, TextEdit, apply, numbers
from dsmigrate.document.positions import LineIndex
from dsmigrate.editing.python import Literal, as_python, literals
from dsmigrate.knowledge import Consumer, knowledge
from dsmigrate.languages import say

_INDENT = 4
_WHOLE = 1e10
"""Below it DeepSpeed's loader makes an integer of a float without a fraction."""


def read_dict(text: str, consumer: Consumer, line: int | None = None) -> Settings:
    """Return what the dictionary of a script says, of several the one on ``line`` (from 1); raises ConvertError."""
    return settings_of(the_one(text, line), text, Form.DICT, consumer)


def the_one(text: str, line: int | None) -> Literal:
    """Return the config dictionary of a script; raises ConvertError for none, and for several without a ``line``."""
    found = literals(text)
    index = LineIndex(text)
    if not found:
        raise ConvertError(say("no dictionary of the script is given to DeepSpeed, or named as its config"))
    if line is not None:
        found = tuple(one for one in found if index.line_of(one.start) < line <= index.line_of(one.end) + 1)
        if not found:
            raise ConvertError(say("there is no config dictionary on line {line}", line=line), line, 1)
    if len(found) > 1:
        lines = say(", ").join(str(index.line_of(one.start) + 1) for one in found)
        raise ConvertError(
            say("the script has several config dictionaries, on the lines {lines}; choose with --line", lines=lines)
        )
    return found[0]


def settings_of(literal: Literal, text: str, form: Form, consumer: Consumer) -> Settings:
    """Return what a dictionary says; raises ConvertError, with the place, for one that is not complete."""
    document = literal.document
    for problem in document.problems:
        if problem.is_fatal:
            raise ConvertError.at(problem.message, text, problem.start)
    value = document.value()
    if not isinstance(value, dict):
        raise ConvertError.at(say("the dictionary cannot be read"), text, literal.start)
    hidden = dict(literal.masked.unknown)
    places = places_of(document)
    unknown = {}
    for path, place in places.items():
        if place.start in hidden:
            spelling = text[place.start : hidden[place.start]]
            number = _python_number(spelling)
            if number is None:
                unknown[path] = " ".join(spelling.split())
            else:
                tree.put(value, path, numbers.spelled(number, spelling))
    return Settings(form, consumer, value, places=places, unknown=unknown, text=text, is_whole=literal.is_whole)


def _python_number(text: str) -> int | float | None:
    """Return the number that only Python spells so (``1_000``, ``.5``), None for other text."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    return int(found) if abs(found) < _WHOLE and found == int(found) else found


def write_dict(config: Config, there: str | None, line: int | None = None) -> str:
    """Return a script that assigns the dictionary, or ``there`` with its dictionary changed where it differs."""
    if there is None or not there.strip():
        return f"ds_config = {spelled(config)}\n"
    return apply(there, dict_edits(the_one(there, line), config, there))


def spelled(config: object, indent: str = "") -> str:
    """Return a value as Python in lines, for a place that is indented by ``indent``."""
    body = as_python(tree.dumped(config, _INDENT, _number))
    return body.replace("\n", f"\n{indent}")


def _number(path: Path, value: float) -> str:
    """Return a number as Python: a whole one is an int there too, unless DeepSpeed makes one of a float (``5e8``)."""
    key = knowledge().key(path)
    takes_float = key is not None and (key.is_checked or "number" in key.type)
    return numbers.in_python(value if takes_float or not isinstance(value, int) else numbers.whole(value))


def dict_edits(literal: Literal, config: Config, text: str) -> Sequence[TextEdit]:
    """Return the edits of a script that make a dictionary say ``config``; expressions that are not touched stay."""
    own = {place: _python_number(text[slice(*place)]) for place in literal.masked.unknown}
    edits = edits_to(literal.document, config)
    return [
        TextEdit(edit.start, edit.end, as_python(edit.text))
        for edit in edits
        if (number := own.get((edit.start, edit.end))) is None or numbers.spelled(number, edit.text) is number
    ]
