"""Schemas of single values, and the texts around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsmigrate.knowledge import wording
from dsmigrate.knowledge.key import Key
from dsmigrate.knowledge.spans import MISSING
from dsmigrate.knowledge.versions import order

Schema = dict[str, Any]
BOUNDS = {
    "minimum": "minimum",
    "exclusive_minimum": "exclusiveMinimum",
    "maximum": "maximum",
    "exclusive_maximum": "exclusiveMaximum",
}
_NUMBERS = frozenset({"integer", "number"})
_WRITTEN_WITH_A_POINT = 1_000_000
"""From here on people write 2.5e8, which VS Code does not take for an integer, and DeepSpeed does."""


def described(key: Key, consumers: Sequence[str]) -> Schema:
    """Return title texts, default and deprecation of a key, without what values it accepts."""
    schema: Schema = {"description": key.summary, "markdownDescription": markdown(key, consumers)}
    if key.default is not MISSING and key.default is not None and key.default != 2**63 - 1:
        schema["default"] = key.default  # JavaScript cannot write the largest integer
    warning = wording.status_text(key)
    if warning:
        schema |= {"deprecationMessage": warning, "doNotSuggest": True}
    return schema


def markdown(key: Key, consumers: Sequence[str]) -> str:
    """Return the hover text of a key."""
    filled = f'"auto" is filled by {" and ".join(consumers)}.' if consumers else ""
    parts = [
        wording.status_text(key),
        key.summary,
        wording.facts_line(key),
        key.doc.strip(),
        wording.required_text(key),
        wording.effective_text(key),
        f"**When to change it.** {key.when.strip()}" if key.when else "",
        f"**Trap.** {key.trap.strip()}" if key.trap else "",
        f"**Often said, but wrong.** {key.myth.strip()}" if key.myth else "",
        f"**No effect.** {key.dead.strip()}" if key.dead else "",
        filled,
    ]
    return "\n\n".join(part for part in parts if part)


def accepted(key: Key, consumers: Sequence[str]) -> list[Schema]:
    """Return the alternatives that a value may take; an empty list when anything goes."""
    auto = bool(consumers or _auto_is_a_value(key)) and "auto" not in key.enum and not _takes_text(key)
    variants = _enumerated(key) if key.enum else [_of_type(kind, key) for kind in key.type if kind != "null"]
    return with_auto_and_null(variants, consumers if auto else None, null="null" in key.type and None not in key.enum)


def with_auto_and_null(variants: list[Schema], consumers: Sequence[str] | None, *, null: bool) -> list[Schema]:
    """Return the alternatives with "auto" (unless ``consumers`` is None) and null added.

    A closed list takes them in: editors then show one list, each value with its meaning.
    """
    added: list[tuple[object, str]] = []
    if consumers is not None:
        added.append(("auto", f"Filled by {' and '.join(consumers)}." if consumers else "Chosen by DeepSpeed."))
    if null and variants:
        if len(variants) == 1 and not added and isinstance(variants[0].get("type"), str) and "enum" not in variants[0]:
            return [{**variants[0], "type": [variants[0]["type"], "null"]}]
        added.append((None, "As if the key were absent."))
    if variants and "enum" in variants[0]:
        first = dict(variants[0])
        meanings = first.get("enumDescriptions", [""] * len(first["enum"]))
        first["enum"] = [*first["enum"], *(value for value, _ in added)]
        if any(meanings) or added:
            first["enumDescriptions"] = first["markdownEnumDescriptions"] = [*meanings, *(text for _, text in added)]
        return [first, *variants[1:]]
    return [*variants, *({"const": value} if value is not None else {"type": "null"} for value, _ in added)]


def completed(schema: Schema, variants: Sequence[Schema]) -> Schema:
    """Return ``schema`` with the alternatives: in place when there is one, else as ``anyOf``.

    The YAML server takes alternatives that all lack a description for one, and drops the text of the key: so all but
    the first repeat it.
    """
    if not variants:
        return schema
    if len(variants) == 1:
        return {**schema, **variants[0]}
    texts = {name: schema[name] for name in ("description", "markdownDescription") if name in schema}
    return {**schema, "anyOf": [variants[0], *({**texts, **variant} for variant in variants[1:])]}


def suggested(suggestions: Sequence[Mapping[str, Any]]) -> Schema:
    """Return the ``defaultSnippets`` that offer sensible values with what they mean."""
    if not suggestions:
        return {}
    return {
        "defaultSnippets": [
            {"label": wording.json_text(one["value"]), "description": one["means"], "body": one["value"]}
            for one in suggestions
        ]
    }


def rejected(key: Key) -> Schema:
    """Return the schema of a key whose presence is an error."""
    text = wording.status_text(key)
    return {
        "description": f"{text} {key.summary}",
        "markdownDescription": f"{text}\n\n{key.summary}\n\n{key.doc.strip()}",
        "errorMessage": text,
        "doNotSuggest": True,
        "not": {},
    }


def no_longer_read(key: Key) -> Schema:
    """Return the schema of a key that an open section swallows since its reader went."""
    text = wording.status_text(key)
    return {"description": f"{text} {key.summary}", "deprecationMessage": text, "doNotSuggest": True}


def file_snippets(table: Mapping[str, Any], version: str) -> list[Schema]:
    """Return the whole-file starters that fit a release, as VS Code's ``defaultSnippets``."""
    return _snippets(table.get("files", {}), version, "config")


def section_snippets(table: Mapping[str, Any], section: str, version: str) -> list[Schema]:
    """Return the starters of a section that fit a release, as VS Code's ``defaultSnippets``."""
    return _snippets(table.get("sections", {}).get(section, {}), version, "value")


def _snippets(starters: Mapping[str, Any], version: str, body: str) -> list[Schema]:
    now = order(version)
    return [
        {"label": label, "description": starter["summary"], "body": starter[body]}
        for label, starter in starters.items()
        if order(starter.get("since", "0.9.0")) <= now
    ]


def any_case(text: str) -> str:
    """Return a regular expression for a text in any case: ``[Ff][Pp]16``."""
    return "".join(f"[{c.upper()}{c.lower()}]" if c.isalpha() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character if character.isalnum() or character in "_-" else f"\\{character}"


def _enumerated(key: Key) -> list[Schema]:
    schema: Schema = {"enum": list(key.enum), **_meanings(key, key.enum)}
    if not key.ignores_case:
        return [schema]
    pattern = "|".join(any_case(str(value)) for value in key.enum)
    return [schema, {"type": "string", "pattern": f"^({pattern})$"}]


def _meanings(key: Key, values: Sequence[object]) -> Schema:
    if not key.values:
        return {}
    meanings = [key.values.get(wording.value_name(value), "") for value in values]
    return {"enumDescriptions": meanings, "markdownEnumDescriptions": meanings}


def _of_type(kind: str, key: Key) -> Schema:
    schema: Schema = {"type": kind}
    if kind == "integer" and isinstance(key.default, (int, float)) and key.default >= _WRITTEN_WITH_A_POINT:
        schema = {"type": "number", "multipleOf": 1}
    if kind in _NUMBERS:
        facts = {name: getattr(key, name) for name in BOUNDS}
        schema |= {BOUNDS[name]: bound for name, bound in facts.items() if bound is not None}
    if kind == "array" and key.item_enum:
        schema["items"] = {"enum": list(key.item_enum), **_meanings(key, key.item_enum)}
    elif kind == "array" and key.items:
        schema["items"] = {"type": key.items[0]} if len(key.items) == 1 else {"anyOf": [{"type": i} for i in key.items]}
    return schema


def _takes_text(key: Key) -> bool:
    return not key.enum and "string" in key.type


def _auto_is_a_value(key: Key) -> bool:
    return key.default == "auto"
