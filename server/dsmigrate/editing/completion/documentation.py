"""The text beside an item, made when a client asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from dsmigrate.editing.completion import data as facts
from dsmigrate.editing.completion.item import Data
from dsmigrate.knowledge import AutoEffect, Consumer, Key, Knowledge, Parameter, TypeFacts, knowledge
from dsmigrate.knowledge.wording import (
    auto_text,
    effective_text,
    facts_line,
    only_short,
    only_text,
    required_text,
    value_name,
)
from dsmigrate.languages import say

_CONSUMERS = {consumer.value: consumer for consumer in Consumer}


def documentation(version: str, consumer: str, data: Data) -> str:
    """Return Markdown about an item of ``complete`` from its ``data``; "" where there is nothing to say.

    ``version`` is the release, ``consumer`` the value of a Consumer, as the view had them; anything else stands for the
    newest release and for plain DeepSpeed.
    """
    kind, *rest = data or ("",)
    return _text(_known(version), _CONSUMERS.get(consumer, Consumer.DEEPSPEED), kind, rest)


def _known(version: str) -> Knowledge:
    try:
        return knowledge(version or None)
    except ValueError:
        return knowledge()


def _text(known: Knowledge, consumer: Consumer, kind: str, rest: Sequence[str]) -> str:
    if kind in {"key", "value"} and rest:
        key = known.key(rest[0])
        return "" if key is None else _joined(_key(key, consumer, rest[1] if len(rest) > 1 else None))
    if kind == "type" and len(rest) == 2:
        owner = _type(known, rest[0], rest[1])
        return "" if owner is None else _joined(_of_type(owner))
    if kind == "parameter" and len(rest) >= 3:
        owner = _type(known, rest[0], rest[1])
        parameter = None if owner is None else owner.parameters.get(rest[2])
        return "" if parameter is None else _joined(_parameter(parameter, rest[3] if len(rest) > 3 else None))
    if kind == "section" and len(rest) == 2:
        return _starter(facts.sections(rest[0], known), rest[1])
    if kind == "file" and len(rest) == 1:
        return _starter(facts.files(known, consumer), rest[0])
    return ""


def _type(known: Knowledge, kind: str, name: str) -> TypeFacts | None:
    return known.optimizer(name) if kind == "optimizer" else known.scheduler(name)


def _joined(parts: Iterator[str]) -> str:
    return "\n\n".join(part.strip() for part in parts if part)


def _key(key: Key, consumer: Consumer, value: str | None) -> Iterator[str]:
    if value is not None:
        yield from _value(key, consumer, value)
    yield key.summary
    yield facts_line(key)
    yield key.doc
    yield required_text(key)
    yield effective_text(key)
    yield say("**When to change it.** {strip}", strip=key.when.strip()) if key.when else ""
    yield say("**Trap.** {strip}", strip=key.trap.strip()) if key.trap else ""
    auto = key.auto(consumer)
    if not key.is_section and value is None and auto.effect in {AutoEffect.FILLED, AutoEffect.VALUE}:
        yield auto_text(auto, consumer)


def _value(key: Key, consumer: Consumer, value: str) -> Iterator[str]:
    """Yield the sentence about one value of a key, in bold."""
    if value == '"auto"':
        yield f"`{value}`: {auto_text(key.auto(consumer), consumer)}"
        return
    meaning = _meaning(key.values, key.suggestions, value)
    yield f"`{value}`: {meaning}" if meaning else ""


def _meaning(values: Mapping[str, str], suggestions: object, value: str) -> str:
    try:
        plain = json.loads(value)
    except ValueError:
        return ""
    for one in suggestions if isinstance(suggestions, list | tuple) else ():
        if one["value"] == plain:
            return str(one["means"])
    return "" if isinstance(plain, list | dict) else values.get(value_name(plain), "")


def _of_type(owner: TypeFacts) -> Iterator[str]:
    yield owner.summary
    yield say("Builds {builds}.", builds=say("; ").join(map(say, owner.builds))) if owner.builds else ""
    yield owner.doc
    yield say("**When to take it.** {strip}", strip=owner.when.strip()) if owner.when else ""
    yield say("**Trap.** {strip}", strip=owner.trap.strip()) if owner.trap else ""
    rows = [
        f"- `{one.name}`{'' if not one.required else say(', required')}: {one.summary}"
        for one in owner.parameters.values()
    ]
    yield say("**Parameters**") + "\n\n" + "\n".join(rows) if rows else ""


def _parameter(parameter: Parameter, value: str | None) -> Iterator[str]:
    if value is not None:
        meaning = _meaning({}, parameter.suggestions, value)
        yield f"`{value}`: {meaning}" if meaning else ""
    yield parameter.summary
    yield parameter.doc
    yield only_text(only_short(parameter.only_said))
    yield say("**When to change it.** {strip}", strip=parameter.when.strip()) if parameter.when else ""
    yield say("**Trap.** {strip}", strip=parameter.trap.strip()) if parameter.trap else ""


def _starter(found: tuple[facts.Starter, ...], label: str) -> str:
    for starter in found:
        if starter.label == label:
            value = json.dumps(starter.value, indent=2, ensure_ascii=False)
            body = value if not starter.path else f'"{starter.path.rpartition(".")[2]}": {value}'
            return say("{text}.", text=starter.summary) + f"\n\n```json\n{body}\n```"
    return ""
