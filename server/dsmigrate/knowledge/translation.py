"""Records of the compiled facts with their prose in the spoken language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LISTS = {"suggest": "means", "memory": "is"}
"""Fields that are lists of tables, and which field of these is prose."""
PLAIN = "english"
"""Where a record keeps the English texts that code reads."""
_READ = ("summary", "only_with")


def translated(content: Mapping[str, Any], prose: Mapping[str, Any]) -> dict[str, Any]:
    """Return a compiled file with the prose of another language; what that lacks stays English."""
    found = dict(content)
    for kind in ("keys", "types"):
        if kind in content:
            there = prose.get(kind, {})
            found[kind] = {path: _record(record, there.get(path, {})) for path, record in content[kind].items()}
    return found


def _record(record: Mapping[str, Any], prose: Mapping[str, Any]) -> dict[str, Any]:
    done = dict(record)
    for name, value in prose.items():
        if name == "params":
            done[name] = {inner: _record(facts, value.get(inner, {})) for inner, facts in record[name].items()}
        elif isinstance(value, dict):
            done[name] = {**record.get(name, {}), **value}
        elif name in _LISTS:
            field = _LISTS[name]
            pairs = zip(record.get(name, ()), value, strict=False)
            done[name] = [{**one, field: text} if text else one for one, text in pairs]
        else:
            done[name] = value
    done[PLAIN] = {name: record[name] for name in _READ if name in record}
    return done
