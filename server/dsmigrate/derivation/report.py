"""What changed between two releases, in the words of a person who maintains the documentation of the keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsmigrate.derivation.release import Release

Facts = Mapping[str, Any]
Keys = Mapping[str, Facts]
NONE = "(none)"
PARAMETERS = ("optimizer.params.", "scheduler.params.")
RANGE = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
SYMBOLS = dict(zip(RANGE, (">=", ">", "<=", "<"), strict=True))


@dataclass(frozen=True)
class Section:
    """One kind of change: a title and a line for each key."""

    title: str
    lines: Sequence[str]


def differences(old: Release, new: Release) -> list[Section]:
    """Return everything that changed from ``old`` to ``new``, kind by kind; kinds without changes are left out."""
    before, after = _live(old.keys), _live(new.keys)
    rejected = {path for path, facts in new.keys.items() if facts.get("rejected")}
    newly = sorted(path for path in rejected if not old.keys.get(path, {}).get("rejected"))
    every = [
        Section("added", [f"{path}: {_shown(after[path])}" for path in sorted(after.keys() - before.keys())]),
        Section("removed", list(_removed(before.keys() - after.keys() - rejected, rejected))),
        Section("removed and rejected", [f"{path} (by {new.keys[path]['table']})" for path in newly]),
        Section("default changed", list(_changes(before, after, _default))),
        Section("type changed", list(_changes(before, after, _type))),
        Section("range changed", list(_changes(before, after, _range))),
        Section("newly deprecated", list(_deprecated(before, after))),
        Section("unknown-key policy changed", list(_changes(before, after, _policy))),
        *_classes("optimizer", old.optimizers, new.optimizers),
        *_classes("scheduler", old.schedulers, new.schedulers),
    ]
    return [section for section in every if section.lines]


def undocumented(keys: Keys, documented: Iterable[str]) -> list[str]:
    """Return the paths without documentation, rejected ones included; parameters of types are told with their types."""
    return sorted(path for path in keys.keys() - set(documented) if not path.startswith(PARAMETERS))


def text(sections: Iterable[Section]) -> str:
    """Return the sections as text, or a line that says that there are none."""
    blocks = [
        f"{section.title} ({len(section.lines)})\n" + "".join(f"  {line}\n" for line in section.lines)
        for section in sections
    ]
    return "\n".join(blocks) if blocks else "no differences\n"


def _live(keys: Keys) -> dict[str, Facts]:
    return {path: facts for path, facts in keys.items() if not facts.get("rejected")}


def _removed(gone: set[str], rejected: set[str]) -> Iterator[str]:
    """Yield the removed keys; what went with its section is only counted there."""
    for path in sorted(gone):
        holders = {path[:end] for end, sign in enumerate(path) if sign == "."}
        if not holders & (gone | rejected):
            below = sum(other.startswith(f"{path}.") for other in gone)
            yield f"{path} (with {below} keys below it)" if below else path


def _changes(before: Keys, after: Keys, shown: Callable[[Facts], str]) -> Iterator[str]:
    for path in sorted(before.keys() & after.keys()):
        old, new = shown(before[path]), shown(after[path])
        if old != new:
            yield f"{path}: {old} -> {new}"


def _default(facts: Facts) -> str:
    return json.dumps(facts["default"], ensure_ascii=False) if "default" in facts else NONE


def _type(facts: Facts) -> str:
    kinds = "|".join(facts["type"]) if facts["type"] else "unknown"
    items = facts.get("items")
    inner = f" of {_type(items)}" if items else ""
    values = f" in {json.dumps(facts['enum'], ensure_ascii=False)}" if "enum" in facts else ""
    return f"{kinds}{inner}{values}"


def _range(facts: Facts) -> str:
    return ", ".join(f"{SYMBOLS[name]} {facts[name]}" for name in RANGE if name in facts) or NONE


def _policy(facts: Facts) -> str:
    return str(facts.get("unknownKeys", NONE))


def _shown(facts: Facts) -> str:
    default = "" if "default" not in facts else f" = {_default(facts)}"
    bounds = "" if _range(facts) == NONE else f", {_range(facts)}"
    return f"{_type(facts)}{default}{bounds}"


def _deprecated(before: Keys, after: Keys) -> Iterator[str]:
    for path in sorted(before.keys() & after.keys()):
        facts = after[path]
        if facts.get("deprecated") and not before[path].get("deprecated"):
            replacing = " or ".join(facts.get("replacedBy", ())) or "nothing"
            yield f"{path}: replaced by {replacing}"


def _classes(kind: str, old: Mapping[str, Keys], new: Mapping[str, Keys]) -> Iterator[Section]:
    yield Section(f"{kind} added", sorted(new["names"].keys() - old["names"].keys()))
    yield Section(f"{kind} removed", sorted(old["names"].keys() - new["names"].keys()))
    changed = [
        f"{name}: {change}"
        for name in sorted(old["classes"].keys() & new["classes"].keys())
        for change in _parameters(old["classes"][name]["params"], new["classes"][name]["params"])
    ]
    yield Section(f"{kind} parameters changed", changed)


def _parameters(old: Keys, new: Keys) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            yield f"{name} added"
        elif name not in new:
            yield f"{name} removed"
        elif old[name] != new[name]:
            yield f"{name}: {_default(old[name])} -> {_default(new[name])}"
