"""The values that a key can be given, each with what it means, in the order in which they are offered."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsmigrate.editing.completion import data
from dsmigrate.editing.completion.body import Body, scalar, spelled
from dsmigrate.editing.completion.item import Kind
from dsmigrate.knowledge import MISSING, Auto, AutoEffect, Consumer, Key, Knowledge, Parameter
from dsmigrate.knowledge.wording import value_name
from dsmigrate.languages import say

LARGEST = 2**53
"""Above it a number is a bound and no value to write."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A value with its texts; it is not for files that have the key ``unless``."""

    value: object
    body: Body
    kind: Kind = Kind.VALUE
    meaning: str = ""
    note: str = ""
    """What is special about it: that it is the default."""
    unless: str = ""
    memory: dict[str, Any] = field(default_factory=dict)
    """What was worked out about it, for each path and reader."""


@functools.lru_cache(maxsize=1024)
def choices(path: str, known: Knowledge, consumer: Consumer) -> tuple[Choice, ...]:
    """Return the values of a key that is no section, the most telling first."""
    key = known.key(path)
    if key is None:
        return ()
    auto = key.auto(consumer)
    found = [*_automatic(key, auto, first=True), *_listed(key), *_automatic(key, auto, first=False)]
    takes_auto = takes(auto, key)
    return tuple(_unique(one for one in found if (takes_auto if one.value == "auto" else fits(key, one.value))))


def takes(auto: Auto | None, key: Key | None) -> bool:
    """Return whether "auto" gives what a person expects: it is filled, or means a default that is "auto" as well."""
    if auto is None:
        return False
    return auto.works or (auto.effect is AutoEffect.DEFAULT and key is not None and key.default == "auto")


@functools.lru_cache(maxsize=1024)
def parameter_choices(kind: str, owner: str, name: str, known: Knowledge, consumer: Consumer) -> tuple[Choice, ...]:
    """Return the values of a parameter of an optimizer or scheduler type."""
    facts = known.optimizer(owner) if kind == "optimizer" else known.scheduler(owner)
    parameter = None if facts is None else facts.parameters.get(name)
    if parameter is None:
        return ()
    auto = known.auto((kind, "params", name), consumer)
    filled = [*_automatic(parameter, auto, first=True)] if auto is not None else []
    found = [*filled, *_listed(parameter)]
    return tuple(_unique(choice for choice in found if fits(parameter, choice.value) or choice.value == "auto"))


def _automatic(facts: Key | Parameter, auto: Auto, *, first: bool) -> Iterator[Choice]:
    """Yield "auto" where it works: before all others where the consumer fills it, behind them as a value of its own."""
    if first and auto.effect is AutoEffect.FILLED:
        yield Choice(
            "auto", scalar("auto"), Kind.CHOICE, say("filled with {source}", source=auto.source), unless=auto.unless
        )
    elif not first and auto.effect is AutoEffect.VALUE and "auto" not in getattr(facts, "enum", ()):
        note = "default" if facts.default == "auto" else ""
        yield Choice("auto", scalar("auto"), Kind.CHOICE, say("chosen by DeepSpeed"), note)


def _listed(facts: Key | Parameter) -> Iterator[Choice]:
    meanings: Mapping[str, str] = facts.values if isinstance(facts, Key) else {}
    kinds = facts.type
    for suggestion in facts.suggestions:
        value = suggestion["value"]
        if "array" in kinds and not isinstance(value, list) and not fits(facts, value):
            value = [value]
        kind = Kind.CHOICE if value in facts.enum else Kind.VALUE
        yield Choice(value, scalar(value), kind, str(suggestion["means"]), _note(facts, value))
    if "boolean" in kinds:
        switches = (False, True) if facts.default is True else (True, False)
        for value in switches:
            yield Choice(value, scalar(value), Kind.CHOICE, meanings.get(value_name(value), ""), _note(facts, value))
    for value in _without_synonyms(facts, meanings):
        yield Choice(value, scalar(value), Kind.CHOICE, meanings.get(value_name(value), ""), _note(facts, value))
    if isinstance(facts, Key):
        for value in facts.item_enum:
            yield Choice([value], scalar([value]), Kind.CHOICE, meanings.get(value_name(value), ""))
    default = facts.default
    if default is not MISSING and not _is_bound(default) and not isinstance(default, dict):
        meaning = say("as if the key were absent") if default is None else ""
        yield Choice(default, scalar(default), Kind.VALUE, meaning, "default")
    if "null" in kinds:
        yield Choice(None, scalar(None), Kind.VALUE, say("as if the key were absent"), _note(facts, None))
    if "string" in kinds and not facts.enum:
        yield Choice("", scalar(""), Kind.VALUE, "")
    if "array" in kinds and isinstance(facts, Key):
        yield Choice([], scalar([]), Kind.VALUE, "")


def _without_synonyms(facts: Key | Parameter, meanings: Mapping[str, str]) -> Iterator[object]:
    """Yield the closed list; of values that mean the same, the suggested one, else the shortest."""
    suggested = [suggestion["value"] for suggestion in facts.suggestions]
    chosen: dict[str, object] = {}
    for value in sorted(facts.enum, key=lambda one: (one not in suggested, len(str(one)))):
        chosen.setdefault(meanings.get(value_name(value)) or spelled(value), value)
    for value in facts.enum:
        if any(value is one for one in chosen.values()):
            yield value


def _note(facts: Key | Parameter, value: object) -> str:
    same = facts.default == value and isinstance(facts.default, bool) is isinstance(value, bool)
    return "default" if facts.default is not MISSING and same else ""


def _is_bound(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) > LARGEST


def _unique(found: Iterator[Choice]) -> Iterator[Choice]:
    seen: set[str] = set()
    for choice in found:
        text = spelled(choice.value)
        if text not in seen:
            seen.add(text)
            yield choice


def fits(facts: Key | Parameter, value: object) -> bool:
    """Return whether a value is of a type, in the closed list and in the range of a key or parameter."""
    if facts.type and not any(_is_of(kind, value) for kind in facts.type):
        return False
    if value is None:
        return True
    if isinstance(value, str) and facts.default == "auto" and not facts.enum:
        return value == "auto"
    if value == [] and isinstance(facts, Parameter) and "number" in facts.type:
        return False
    if facts.enum and not _is_listed(facts, value):
        return False
    if isinstance(value, list):
        items = set(facts.items) - {"any"}
        listed = facts.item_enum if isinstance(facts, Key) else ()
        return all((not items or any(_is_of(kind, item) for kind in items)) for item in value) and (
            not listed or all(item in listed for item in value)
        )
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _is_in_range(facts, value)
    return True


def _is_listed(facts: Key | Parameter, value: object) -> bool:
    if isinstance(facts, Key) and facts.ignores_case and isinstance(value, str):
        return value.lower() in {str(one).lower() for one in facts.enum}
    return any(value == one and type(value) is type(one) for one in facts.enum)


def _is_in_range(facts: Key | Parameter, value: float) -> bool:
    return (
        (facts.minimum is None or value >= facts.minimum)
        and (facts.exclusive_minimum is None or value > facts.exclusive_minimum)
        and (facts.maximum is None or value <= facts.maximum)
        and (facts.exclusive_maximum is None or value < facts.exclusive_maximum)
    )


def _is_of(kind: str, value: object) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if kind == "number":
        return isinstance(value, int | float)
    if kind == "null":
        return value is None
    return isinstance(value, {"string": str, "array": list, "object": dict}.get(kind, ()))


def placeholder(facts: Key | Parameter, offered: Sequence[Choice]) -> Sequence[Choice]:
    """Return the values to put behind a new key, the best first.

    A switch is on, a closed list starts with its most common value, a number with the first one that is suggested.
    """
    found = sorted(offered, key=lambda choice: choice.value is False)
    if isinstance(facts, Key) and facts.enum and "boolean" not in facts.type:
        found.sort(key=lambda choice: (choice.kind is Kind.VALUE, _commonness(facts, choice), choice.note != "default"))
    telling = [choice for choice in found if choice.value is not None and choice.value not in ("", [])]
    stand_ins = [Choice(value, scalar(value)) for value in _stand_ins(facts) if fits(facts, value)]
    return [*telling, *stand_ins]


def _commonness(key: Key, choice: Choice) -> int:
    return 0 if choice.meaning.startswith("filled") else data.rank(f"{key.path}={value_name(choice.value)}")


def _stand_ins(facts: Key | Parameter) -> Iterator[object]:
    """Yield values by type alone."""
    least = facts.minimum if facts.minimum is not None else facts.exclusive_minimum
    if {"integer", "number"} & set(facts.type):
        start = least if least is not None else 1
        yield int(start) if "integer" in facts.type else start
        yield int(start) + 1
        yield 0.5
    if "string" in facts.type:
        yield ""
    if "array" in facts.type and not getattr(facts, "parts", ()):
        yield []
    if "null" in facts.type:
        yield None
