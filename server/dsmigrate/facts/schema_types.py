"""Optimizers and schedulers in the schema: which types there are, and what each takes in ``params``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dsmigrate.facts.schema_values import BOUNDS, any_case, completed, suggested, with_auto_and_null
from dsmigrate.knowledge.wording import only_text

Schema = dict[str, Any]
Fillable = Callable[[str], Sequence[str]]


def attach(kind: str, section: Schema, types: Mapping[str, Mapping[str, Any]], fillable: Fillable) -> Schema:
    """Add the types to the schema of ``optimizer`` or ``scheduler``; returns the definitions they need.

    A name that is not listed stays legal: DeepSpeed takes every class name of torch.
    """
    section["properties"]["type"] |= {
        "anyOf": [
            {
                "enum": list(types),
                "enumDescriptions": [facts["summary"] for facts in types.values()],
                "markdownEnumDescriptions": [facts["summary"] for facts in types.values()],
            },
            {"type": "string"},
        ]
    }
    for union in ("type", "enum", "pattern"):
        section["properties"]["type"].pop(union, None)
    section["properties"]["type"]["examples"] = list(types)[:1]
    definitions = {_name(kind, name): _params(kind, facts, fillable) for name, facts in types.items()}
    section["allOf"] = [_condition(kind, name, facts) for name, facts in types.items()]
    params = section["properties"].setdefault("params", {"description": f"Parameters of the {kind}."})
    section["properties"]["params"] = {
        **{name: value for name, value in params.items() if name not in {"properties", "additionalProperties"}},
        "type": "object",
    }
    return definitions


def _condition(kind: str, name: str, facts: Mapping[str, Any]) -> Schema:
    exact: Schema = (
        {"const": name} if facts.get("case_sensitive") else {"type": "string", "pattern": f"^{any_case(name)}$"}
    )
    return {
        "if": {"type": "object", "required": ["type"], "properties": {"type": exact}},
        "then": {"type": "object", "properties": {"params": {"$ref": f"#/definitions/{_name(kind, name)}"}}},
    }


def _params(kind: str, facts: Mapping[str, Any], fillable: Fillable) -> Schema:
    parameters = facts["params"]
    return {
        "type": "object",
        "properties": {
            name: _parameter(parameter, fillable(f"{kind}.params.{name}")) for name, parameter in parameters.items()
        },
        "additionalProperties": bool(facts.get("takes_anything")),
    }


def _parameter(facts: Mapping[str, Any], consumers: Sequence[str]) -> Schema:
    texts = [facts["summary"], facts.get("doc", "").strip()]
    texts += [f"**When to change it.** {facts['when'].strip()}"] if "when" in facts else []
    texts += [f"**Trap.** {facts['trap'].strip()}"] if "trap" in facts else []
    texts += [only_text(facts.get("only_with", ""))]
    texts += [f'"auto" is filled by {" and ".join(consumers)}.'] if consumers else []
    schema: Schema = {
        "description": facts["summary"],
        "markdownDescription": "\n\n".join(text for text in texts if text),
    }
    if facts.get("default") is not None:
        schema["default"] = facts["default"]
    schema |= suggested(facts.get("suggest", ()))
    kinds = list(facts["type"])
    variants: list[Schema] = [{"enum": list(facts["enum"])}] if "enum" in facts else []
    if not variants:
        variants = [_of_type(kind, facts) for kind in kinds if kind != "null"]
    auto = consumers if consumers and "string" not in kinds else None
    return completed(schema, with_auto_and_null(variants, auto, null="null" in kinds))


def _of_type(kind: str, facts: Mapping[str, Any]) -> Schema:
    schema: Schema = {"type": kind}
    if kind in {"integer", "number"}:
        schema |= {spelled: facts[name] for name, spelled in BOUNDS.items() if name in facts}
    if kind == "array" and facts.get("items"):
        schema["items"] = {"anyOf": [{"type": item} for item in facts["items"]]}
        if len(facts["items"]) == 1:
            schema["items"] = {"type": facts["items"][0]}
    return schema


def _name(kind: str, name: str) -> str:
    return f"{kind}-{re.sub(r'[^A-Za-z0-9]', '-', name)}"
