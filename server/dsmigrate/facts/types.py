"""Optimizer and scheduler types: documentation with the shared descriptions of parameters filled in."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from dsmigrate.facts.sources import FactsError, Table

SHARED = "*"
_LISTS = ("type", "items", "source")
_TYPE_FIELDS = frozenset(
    {"summary", "doc", "when", "trap", "myth", "class", "case_sensitive", "since", "until", "untested", "torch"}
    | {"params", "source", "related", "takes_anything", "successor", "states", "switched_states"}
)
_PARAMETER_FIELDS = frozenset(
    {"summary", "doc", "when", "trap", "myth", "unit", "suggest", "type", "items", "default", "required", "only_with"}
    | {"since", "until", "enum", "values", "minimum", "exclusive_minimum", "maximum", "exclusive_maximum", "source"}
    | {"parts", "decisive", "torch_default", "earlier"}
)


def types(tables: Mapping[str, Table], derived: Table, where: str) -> dict[str, dict[str, Any]]:
    """Return every type by name, each with its parameters complete and with how their defaults moved.

    ``derived`` says which classes the releases build for a name, and what these take. A table ``*.foreach`` describes a
    parameter for all types that list it; ``SGD.lr`` overrides field by field.
    Raises FactsError for unknown fields, and for parameters without documentation.
    """
    found: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    for name, table in tables.items():
        owner, dot, _ = name.partition(".")
        if dot:
            problems += [f"{name}: unknown field {field}" for field in table.keys() - _PARAMETER_FIELDS]
            problems += [f"{name}: no type {owner}" for _ in [0] if owner != SHARED and owner not in tables]
            continue
        problems += [f"{name}: unknown field {field}" for field in table.keys() - _TYPE_FIELDS]
        found[name] = _type(name, table, tables, problems)
        for parameter, facts in found[name]["params"].items():
            moved = _moves(name, parameter, derived)
            if moved:
                facts["changes"] = moved
    if problems:
        raise FactsError("\n".join(f"{where}: {problem}" for problem in problems))
    return found


def _moves(name: str, parameter: str, derived: Table) -> list[list[Any]]:
    """Return how the default of a parameter moved: release, old, new; of the first class that takes it."""
    spans = derived.get("names", {}).get(name) or derived.get("names", {}).get(name.lower()) or []
    for built in [kind for span in spans[-1:] for kind in span.get("classes", ())]:
        with_it = [span for span in derived["classes"].get(built, ()) if parameter in span.get("params", {})]
        defaults = [(span["from"], span["params"][parameter].get("default")) for span in with_it]
        if defaults:
            return [[now, old, new] for (_, old), (now, new) in pairwise(defaults) if old != new]
    return []


def _type(name: str, table: Table, tables: Mapping[str, Table], problems: list[str]) -> dict[str, Any]:
    listed = dict(table)
    for field in ("class", "source"):
        if isinstance(listed.get(field), str):
            listed[field] = [listed[field]]
    listed["params"] = {}
    for parameter in table.get("params", ()):
        facts = {**tables.get(f"{SHARED}.{parameter}", {}), **tables.get(f"{name}.{parameter}", {})}
        facts["earlier"] = [dict(one) for one in facts.get("earlier", ())]
        for holder in (facts, *facts["earlier"]):
            holder |= {field: [holder[field]] for field in _LISTS if isinstance(holder.get(field), str)}
        if not facts["earlier"]:
            del facts["earlier"]
        if "summary" not in facts or "type" not in facts:
            problems.append(f"{name}.{parameter}: no summary or type")
        listed["params"][parameter] = facts
    return listed
