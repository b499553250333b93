"""What the optimizer and scheduler sections name, and what they pass to it."""

from __future__ import annotations

import enum
import operator
from collections.abc import Iterable
from typing import Literal

from dsmigrate.document import Node, Object, Path
from dsmigrate.knowledge import MISSING, Parameter, TypeFacts, near
from dsmigrate.knowledge.versions import order
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry

Section = Literal["optimizer", "scheduler"]


def section(context: Context, name: Section) -> Entry | None:
    """Return the section when the file has it as an object."""
    entry = context.entry(name)
    return entry if entry is not None and isinstance(entry.node, Object) else None


def written_type(context: Context, name: Section) -> str | None:
    """Return the text that names the type; None when there is none, or "auto"."""
    return context.once((written_type, name), lambda: _written_type(context, name))


def _written_type(context: Context, name: Section) -> str | None:
    value = context.raw(f"{name}.type") if section(context, name) is not None else MISSING
    return value if isinstance(value, str) and value != "auto" else None


def built_type(context: Context, name: Section) -> TypeFacts | None:
    """Return the type that the release makes of the section; None when it builds none."""
    if written_type(context, name) is None:
        return None
    facts = context.type_of(name)
    return facts if facts is not None and is_here(facts, context) else None


def is_here(facts: TypeFacts, context: Context) -> bool:
    """Return whether the release has a type."""
    now = order(context.known.version)
    return order(facts.since) <= now and (facts.until is None or now < order(facts.until))


def before(context: Context, version: str) -> bool:
    """Return whether the release is older than ``version``."""
    return order(context.known.version) < order(version)


def parameters(context: Context, name: Section) -> tuple[Entry, ...]:
    """Return the members of ``params`` that have a value."""
    return context.once(
        (parameters, name),
        lambda: tuple(
            entry
            for entry in context.entries
            if len(entry.path) == 3 and entry.path[:2] == (name, "params") and entry.node is not None
        ),
    )


def given(context: Context, name: Section) -> dict[str, object]:
    """Return ``params`` as the loader reads it; empty when it is no object."""
    return context.once(
        (given, name),
        lambda: {entry.name: entry.node.value() for entry in parameters(context, name) if entry.node is not None},
    )


def params_path(name: Section, *parts: str) -> Path:
    """Return the path of ``params``, or of a parameter."""
    return (name, "params", *parts)


def is_number(value: object) -> bool:
    """Return whether a value counts as a number for Python: True and False do."""
    return isinstance(value, (bool, int, float))


def as_number(text: object) -> int | float | None:
    """Return the number that a text spells: 0.0001 of "1e-4"."""
    if not isinstance(text, str):
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number == number and abs(number) != float("inf") else None  # noqa: PLR0124 - not NaN


def as_switch(text: object) -> bool | None:
    """Return the switch that a text spells."""
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    return words.get(text.strip().lower()) if isinstance(text, str) else None


def misfit(parameter: Parameter, value: object) -> str | None:
    """Return what a parameter wants when a value has the wrong type for it ("a number"), else None.

    "auto" is somebody else's, and so is a whole number where a float is meant.
    """
    if value == "auto" or not parameter.type or (value is None and "null" in parameter.type):
        return None
    wants = [_fits(kind, parameter, value) for kind in parameter.type if kind != "null"]
    return None if not all(wants) else say(" or ").join(want for want in wants if want)


def _fits(kind: str, parameter: Parameter, value: object) -> str:
    """Return "" when a value is of a kind, else what the kind is called."""
    if kind in {"number", "integer"}:
        return "" if is_number(value) else say("a number")
    if kind == "string":
        return "" if isinstance(value, str) else say("a text")
    if kind == "boolean":
        return "" if is_number(value) or value is None else say("true or false")
    if kind == "array":
        items = parameter.items
        fine = isinstance(value, list) and all(
            not {"number", "integer"} & set(items) or is_number(item) or (item is None and "null" in items)
            for item in value
        )
        wanted = say("numbers") if {"number", "integer"} & set(items) else say("values")
        return "" if fine else say("a list of {wanted}", wanted=wanted)
    return ""


def outside(parameter: Parameter, value: object) -> str | None:
    """Return the range of a parameter when a number, or true and false for 1 and 0, lies outside it ("above 0")."""
    if not isinstance(value, (int, float)):
        return None
    bounds = (
        (parameter.minimum, say("at least"), operator.lt),
        (parameter.exclusive_minimum, say("above"), operator.le),
        (parameter.maximum, say("at most"), operator.gt),
        (parameter.exclusive_maximum, say("below"), operator.ge),
    )
    if not any(bound is not None and violates(value, bound) for bound, _, violates in bounds):
        return None
    return say(" and ").join(f"{word} {json_text(bound)}" for bound, word, _ in bounds if bound is not None)


def nearest_names(word: str, names: Iterable[str], *, limit: int = 3) -> list[str]:
    """Return the names that ``word`` may mean: the same letters in another spelling first, then slips, then parts."""
    names = list(names)
    same = [name for name in names if folded(name) == folded(word)]
    inside = sorted((name for name in names if folded(name) in folded(word)), key=len, reverse=True)
    return list(dict.fromkeys([*same, *near.nearest(word, names, limit=limit), *inside]))[:limit]


def folded(word: str) -> str:
    """Return a name without case and punctuation, by which two spellings of one name are the same."""
    return "".join(letter for letter in word.lower() if letter.isalnum())


def one_of(names: Iterable[str]) -> str:
    """Return names in backticks, joined by "or"."""
    quoted = [f"`{name}`" for name in names]
    return (
        quoted[0]
        if len(quoted) == 1
        else say("{quoted} or {quoted_2}", quoted=say(", ").join(quoted[:-1]), quoted_2=quoted[-1])
        if quoted
        else ""
    )


def is_new(since: str, context: Context) -> bool:
    """Return whether something that came with ``since`` is not there yet."""
    return before(context, since)


class Whole(enum.Enum):
    """What a number is to Python, as far as it matters whether it is an ``int``."""

    INT = "int"
    READ_AS_INT = "read as int"
    """Spelled as a float without a fraction, which Hjson makes an int, and ``json`` does not."""
    FLOAT = "float"


def whole(context: Context, node: Node) -> Whole:
    """Return whether the consumer's loader makes an ``int`` of a number: Hjson does of 100.0 and 1e3."""
    value = node.value()
    if isinstance(value, bool) or not any(sign in node.raw for sign in ".eE"):
        return Whole.INT
    if isinstance(value, float) or context.consumer.reads_strict_json:
        return Whole.FLOAT
    return Whole.READ_AS_INT
