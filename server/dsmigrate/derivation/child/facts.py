"""What the walk has recorded, as facts of every path."""

from __future__ import annotations

from typing import Any

from dsmigrate.derivation.child.annotations import json_type, ordered, plain_value
from dsmigrate.derivation.child.models import UNSPELLED, json_default, model_facts, model_source, unknown_keys
from dsmigrate.derivation.child.record import MISSING, Read, Record
from dsmigrate.derivation.child.values import ANY_ITEM, ANY_NAME


def all_facts(record: Record) -> dict[str, dict[str, Any]]:
    """Return path to facts; what a pydantic model judges stands before what is only read."""
    found: dict[str, dict[str, Any]] = {}
    for path, model in record.models.items():
        found |= {path: section_facts(path, model, record)}
        found |= model_facts(model, path, record.root)
    judged = {path: facts.get("unknownKeys") != "ignore" for path, facts in found.items()}
    for path, read in record.reads.items():
        if path not in judged and not below_model(path, judged) and not engine_parameter(path, read):
            found[path] = read_facts(path, read, record)
    for path, other in record.aliases.items():
        found[path] = {"type": ["object"], "aliasOf": other} | {
            name: value for name, value in found[other].items() if name in {"validated", "unknownKeys", "source"}
        }
    gone = [*record.rejected, *(f"{path}." for path in record.aliases)]
    for path in [path for path in found if any(under(path, other) for other in gone)]:
        del found[path]
    for path, (table, source) in record.rejected.items():
        found[path] = {"rejected": True, "table": table, "source": source}
    return {path: in_order(found[path]) for path in sorted(found) if keepable(path)}


ORDER = (
    "type", "items", "enum", "ignoreCase", "default", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum",
    "field", "aliasOf", "deprecated", "replacedBy", "rejected", "table", "validated", "unknownKeys", "source",
)  # fmt: skip


def in_order(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts in the order in which they are written."""
    return {name: facts[name] for name in ORDER if name in facts}


def section_facts(path: str, model: type, record: Record) -> dict[str, Any]:
    """Return the facts of a section that a pydantic model judges; some also have a short form of another type."""
    read = record.reads.get(path)
    short = [kind for kind in read.tested_as if kind in {"boolean", "string"}] if read is not None else []
    return {
        "type": ordered({"object", *short}),
        "validated": "pydantic",
        "unknownKeys": unknown_keys(model),
        "source": model_source(model, record.root),
    }


def engine_parameters(record: Record) -> dict[str, dict[str, Any]]:
    """Return what the engine itself takes out of ``optimizer.params`` before the optimizer gets the rest."""
    found = {}
    for path, read in record.reads.items():
        if engine_parameter(path, read) and path in record.popped:
            default = json_default(read.default) if read.default is not MISSING else UNSPELLED
            stated = {} if default is UNSPELLED or read.other_defaults else {"default": default}
            found[path.removeprefix(OPTIMIZER_PARAMS)] = stated | {"source": read.source}
    return dict(sorted(found.items()))


OPTIMIZER_PARAMS = "optimizer.params."


def engine_parameter(path: str, read: Read) -> bool:
    """Return whether a path is a parameter of the optimizer that only the engine looks at."""
    return path.startswith(OPTIMIZER_PARAMS) and not read.source.endswith("/config.py")


def keepable(path: str) -> bool:
    """Return whether a path names a key rather than any key or any item."""
    return not path.startswith((ANY_NAME, ANY_ITEM)) and not path.endswith((ANY_NAME, ANY_ITEM))


def under(path: str, other: str) -> bool:
    """Return whether ``path`` is ``other`` or lies below it; ``other`` with a dot at the end is only what is below."""
    return path == other or path.startswith(other if other.endswith(".") else f"{other}.")


def below_model(path: str, judged: dict[str, bool]) -> bool:
    """Return whether a pydantic model says which keys there are where ``path`` is: not in its free-form dicts."""
    holder = path.rpartition(".")[0]
    while holder:
        if holder in judged:
            return judged[holder]
        holder = holder.rpartition(".")[0]
    return False


def read_facts(path: str, read: Read, record: Record) -> dict[str, Any]:
    """Return the facts of a key that code reads from a dict."""
    section = any(other.startswith(f"{path}.") and keepable(other) for other in record.reads)
    listed = any(other.startswith(f"{path}{ANY_ITEM}.") for other in record.reads)
    default = json_default(read.default) if read.default is not MISSING else UNSPELLED
    facts: dict[str, Any] = {"type": read_type(read, default, section=section) or (["array"] if listed else None)}
    if listed:
        facts["items"] = {"type": ["object"]}
    if read.values and not section:
        facts["enum"] = read.values
        facts |= {"ignoreCase": True} if read.ignore_case else {}
    if default is not UNSPELLED and not read.other_defaults and not (section and default is not None):
        facts["default"] = default
    facts["validated"] = "read"
    if section or listed:
        facts["unknownKeys"] = "ignore"
    facts["source"] = read.source
    return facts


def read_type(read: Read, default: object, *, section: bool) -> list[str] | None:
    """Return the JSON types of a value that is only read: what its default, its values and conversions tell."""
    kinds = {"object"} if section else set()
    if not kinds and default is not UNSPELLED and default is not None and not read.other_defaults:
        kinds = {json_type(plain_value(default)), *read.tested_as}
    if not kinds:
        kinds = {json_type(value) for value in read.values}
    if not kinds and len(read.made_into) == 1:
        kinds = set(read.made_into)
    if not kinds:
        return None
    if "number" in {*kinds, *read.made_into}:
        kinds = (kinds - {"integer"}) | {"number"} if "integer" in kinds else kinds
    return ordered(kinds | ({"null"} if default is None else set()))
