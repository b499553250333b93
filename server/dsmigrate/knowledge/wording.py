"""Facts in words: the same sentences in hovers, in the terminal, on pages and in the JSON Schema."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence

from dsmigrate.knowledge.consumer import Auto, AutoEffect, Consumer
from dsmigrate.knowledge.key import Key
from dsmigrate.knowledge.spans import MISSING, Event, EventKind, Status
from dsmigrate.knowledge.types import Parameter
from dsmigrate.languages import mark, say

FIRST = "0.9.0"
"""The oldest release that is known: "since" it means since it or earlier."""

_AUTO = {
    AutoEffect.DEFAULT: mark("is dropped without a word, and the default applies"),
    AutoEffect.TEXT: mark('stays the text "auto", which nothing understands'),
    AutoEffect.CONFIG_ERROR: mark("is an error when the config is read"),
    AutoEffect.ENGINE_ERROR: mark("is an error when DeepSpeed uses the value"),
    AutoEffect.VALUE: mark("is a value of its own"),
    AutoEffect.REFUSED: mark("is refused by name"),
}


def json_text(value: object) -> str:
    """Return a value as it is written in a config; large whole floats stay short (5e+08 is 500000000)."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"{value:.1f}" if abs(value) < 1e6 else str(int(value))
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:  # half-typed text may be nested without end
        return "…"


def value_name(value: object) -> str:
    """Return the name of a value in ``Key.values``: a text as it is, anything else as JSON (``true``, ``2``)."""
    return value if isinstance(value, str) else json.dumps(value)


def default_text(key: Key) -> str:
    """Return the default in backticks, or what its absence means."""
    if key.default is MISSING:
        return say("none")
    text = json_text(key.default)
    return f"`{text}`" if len(text) <= 80 else f"`{text[:77]}…`"


_KINDS = {
    "boolean": mark("boolean"),
    "integer": mark("integer"),
    "number": mark("number"),
    "string": mark("string"),
    "array": mark("array"),
    "object": mark("object"),
    "null": mark("null"),
}
_PLURALS = {
    "boolean": mark("booleans"),
    "integer": mark("integers"),
    "number": mark("numbers"),
    "string": mark("strings"),
    "array": mark("arrays"),
    "object": mark("objects"),
    "null": mark("nulls"),
    "any": mark("values"),
}


def type_text(key: Key) -> str:
    """Return the types in words: "integer or null", "list of strings"."""
    words = [
        say("list of {plural}", plural=_plural(key.items))
        if kind == "array" and key.items
        else say(_KINDS.get(kind, kind))
        for kind in key.type
    ]
    return _alternatives(words) or say("any value")


def range_text(key: Key | Parameter) -> str:
    """Return the accepted range, such as "≥ 0" or "> 0 and < 1"; "" without one."""
    bounds = (
        ("≥", key.minimum),
        (">", key.exclusive_minimum),
        ("≤", key.maximum),
        ("<", key.exclusive_maximum),
    )
    return _both(f"{sign} {json_text(bound)}" for sign, bound in bounds if bound is not None)


def since_text(key: Key) -> str:
    """Return when the key came and went: "since 0.15.2", "0.9 or earlier until 0.19.6"."""
    if key.since is None:
        return say("never read, refused since {until}", until=key.until)
    came = say("0.9 or earlier") if key.since == FIRST else say("since {since}", since=key.since)
    return came if key.until is None else say("{came}, gone with {until}", came=came, until=key.until)


def status_text(key: Key) -> str:
    """Return a warning about the key at its release; "" for a key that is simply there."""
    instead = (
        say("; use {alternatives}", alternatives=_alternatives([f"`{path}`" for path in key.successors]))
        if key.successors
        else ""
    )
    if key.status is Status.DEPRECATED:
        return say("Deprecated{instead}.", instead=instead)
    if key.status is Status.NOT_YET:
        return say("Not in DeepSpeed {version}: it came with {since}.", version=key.version, since=key.since)
    if key.status is Status.NO_LONGER:
        since = say(" since {until}", until=key.until) if key.until else ""
        return say("Not read any more{since}{instead}.", since=since, instead=instead)
    if key.status is Status.REJECTED:
        since = say(" since {until}", until=key.until) if key.until else ""
        return say("Removed: DeepSpeed rejects a config that holds it{since}{instead}.", since=since, instead=instead)
    return ""


def facts_line(key: Key, *, oldest: bool = True) -> str:
    """Return type, range, unit, default and age in one line; without ``oldest`` no age where every release has it."""
    accepted = type_text(key)
    if range_text(key):
        accepted += f" {range_text(key)}"
    if key.unit:
        accepted += say(" ({unit})", unit=say(key.unit))
    parts = [accepted]
    if not (key.is_section and key.default in (None, MISSING)):
        parts.append(say("default {default_text}", default_text=default_text(key)))
    if oldest or key.since != FIRST or key.until is not None:
        parts.append(since_text(key))
    return " · ".join(parts)


def effective_text(key: Key) -> str:
    """Return when the key does something: "Does something only when `fp16.enabled` is `true`."; "" for always."""
    always = [condition_text(key.effective_when)] if key.effective_when else []
    one_of = [condition_text(conditions) for conditions in key.effective_when_any]
    conditions = _both([*always, *([say(", or when ").join(one_of)] if one_of else [])])
    return say("Does something only when {conditions}.", conditions=conditions) if conditions else ""


def required_text(key: Key) -> str:
    """Return when its section must hold the key: "`amp` cannot do without it."; "" for never."""
    if key.required_when is None:
        return ""
    when = say(" when {condition_text}", condition_text=condition_text(key.required_when)) if key.required_when else ""
    return say("`{parent}` cannot do without it{when}.", parent=key.parent, when=when)


def condition_text(conditions: Mapping[str, Sequence[object]]) -> str:
    """Return paths with the values they must have, all of them, in words."""
    return _both(
        say(
            "`{path}` is {what}",
            path=path,
            what=values_text(values),
        )
        for path, values in conditions.items()
    )


def values_text(values: Sequence[object]) -> str:
    """Return values in backticks of which one is wanted, in words; "there" for any value at all."""
    return _alternatives([f"`{json_text(value)}`" for value in values]) or say("there")


def auto_text(auto: Auto, consumer: Consumer) -> str:
    """Return what "auto" becomes for a consumer, in one sentence."""
    if auto.effect is AutoEffect.FILLED:
        what = say('"auto", and any other value,') if auto.overwrites else '"auto"'
        unless = say(", unless the config has `{unless}`", unless=auto.unless) if auto.unless else ""
        return say(
            "{consumer} fills {what} with {source}{unless}.",
            consumer=consumer.title,
            what=what,
            source=auto.source,
            unless=unless,
        )
    return say('For {consumer} "auto" {auto}.', consumer=consumer.title, auto=say(_AUTO[auto.effect]))


def only_text(condition: str) -> str:
    """Return which classes take a parameter, as a sentence; "" for all of them."""
    if not condition:
        return ""
    en_with = "" if condition.startswith(("with", "when", "for ", "if ", "under ", "in ")) else "with "
    return say("Only {en_with}{condition}.", en_with=en_with, condition=condition.rstrip(".。"))


def only_short(condition: str) -> str:
    """Return the condition of a parameter without what the other classes do with it."""
    return re.split(r"[;；]", condition, maxsplit=1)[0]


def event_text(event: Event) -> str:
    """Return an event of the history in a few words."""
    if event.kind is EventKind.ADDED:
        return say("there in 0.9.0 or earlier") if event.version == FIRST else say("added")
    if event.kind is EventKind.REMOVED:
        return say("no longer read")
    if event.kind is EventKind.REJECTED:
        return say("removed, and rejected when present")
    if event.kind is EventKind.DEPRECATED:
        instead = event.new if isinstance(event.new, tuple) else ()
        return say("deprecated") + (
            say(" in favour of {alternatives}", alternatives=_alternatives([f"`{path}`" for path in instead]))
            if instead
            else ""
        )
    if event.kind is EventKind.CHECKED:
        return say("unknown keys are rejected") if event.new == "reject" else say("unknown keys are swallowed")
    what = {
        EventKind.DEFAULT: say("default"),
        EventKind.TYPE: say("type"),
        EventKind.RANGE: say("range"),
        EventKind.VALUES: say("values"),
    }[event.kind]
    return f"{what} {_side(event.old)} → {_side(event.new)}"


def _side(value: object) -> str:
    if value is MISSING or value in ((), {}):
        return say("none")
    if isinstance(value, tuple):
        return _alternatives([say(_KINDS.get(str(part), str(part))) for part in value])
    if isinstance(value, dict):
        signs = {"minimum": "≥", "exclusive_minimum": ">", "maximum": "≤", "exclusive_maximum": "<"}
        return _both(f"{signs[name]} {json_text(bound)}" for name, bound in value.items())
    return f"`{json_text(value)}`"


def kinds_text(kinds: Sequence[str], items: Sequence[str] = ()) -> str:
    """Return JSON types of which one is wanted, in words: "number or null", "list of strings"."""
    words = [
        say("list of {plural}", plural=say(" or ").join(say(_PLURALS.get(item, f"{item}s")) for item in items))
        if kind == "array" and items
        else say(_KINDS.get(kind, kind))
        for kind in kinds
    ]
    return say(" or ").join(words)


def _both(clauses: Iterable[str]) -> str:
    """Return clauses that hold together, as one."""
    return functools.reduce(_and, clauses) if (clauses := list(clauses)) else ""


def _and(first: str, second: str) -> str:
    return say("{first} and {second}", first=first, second=second)


def _alternatives(words: Sequence[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return say("{words} or {words_2}", words=say(", ").join(words[:-1]), words_2=words[-1])


def _plural(types: Sequence[str]) -> str:
    return _alternatives([say(_PLURALS.get(kind, f"{kind}s")) for kind in types])
