"""Joining documentation and derived facts into one record per key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dsmigrate.facts import earlier
from dsmigrate.facts.earlier import is_gone
from dsmigrate.facts.sources import FactsError, Sources, Table
from dsmigrate.knowledge import paths
from dsmigrate.knowledge.versions import order

Records = dict[str, dict[str, Any]]

PROSE = ("summary", "doc", "when", "trap", "myth", "unit", "values", "suggest", "effective_when", "dead", "related")
_PLAIN = (
    *PROSE,
    "source",
    "alias_of",
    "successor",
    "auto",
    "ignore_case",
    "rejects_wrong_values",
    "required",
    "opened",
    "effective_when_any",
    "takes_unlisted",
    "presence",
    "memory",
    "decisive",
    "affects",
)
_MACHINE = ("type", "items", "default", "enum", "minimum", "exclusive_minimum", "maximum", "exclusive_maximum")
_DERIVED_NAMES = {
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
    "replacedBy": "replaced_by",
    "unknownKeys": "unknown_keys",
}
_LIMITS = ("enum", "minimum", "exclusive_minimum", "maximum", "exclusive_maximum")
_CONFIG_FILES = ("/config.py", "aio_config.py")
"""What DeepSpeedConfig is made of; other files take their keys out of a dictionary that it only carries."""

FIELDS = frozenset(
    {*_PLAIN, *_MACHINE, "declared", "since", "until", "unknown_keys", "absent_only", "enum_at_use", "earlier"}
)


def records(sources: Sources) -> dict[str, Records]:
    """Return the record of every key, by file and path.

    Raises FactsError when a key has facts and no documentation, documentation and no facts, or both and they differ.
    """
    found: dict[str, Records] = {}
    problems: list[str] = []
    spans = {path: (name, found) for name, keys in sources.spans.items() for path, found in keys.items()}
    prose = {path: (name, table) for name, tables in sources.prose.items() for path, table in tables.items()}
    for path in sorted({*prose, *spans}):
        if path not in prose and _told_elsewhere(path, prose):
            continue
        name, table = prose.get(path, (spans.get(path, ("", []))[0], None))
        try:
            record = _record(table, spans[path][1] if path in spans else None)
        except FactsError as error:
            problems.append(f"{name}: {path}: {error}")
        else:
            found.setdefault(name, {})[path] = record
    if problems:
        raise FactsError("\n".join(problems))
    _mark_sections(found)
    return found


def every(found: Mapping[str, Records]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield file, path and record of every key."""
    for name, keys in found.items():
        for path, record in keys.items():
            yield name, path, record


def _told_elsewhere(path: str, prose: Mapping[str, tuple[str, Table]]) -> bool:
    """Whether a derived key needs no record: parameters belong to their types, keys of an alias to its section."""
    return path.startswith(("optimizer.params.", "scheduler.params.")) or any(
        holder in prose and "alias_of" in prose[holder][1] for holder in paths.ancestors(path)
    )


def _record(prose: Table | None, derived: list[Table] | None) -> dict[str, Any]:
    if prose is None:
        raise FactsError("has no documentation")
    older = {name for one in prose.get("earlier", ()) for name in one.keys() - {"until", "none"}}
    unknown = (prose.keys() - FIELDS) | (older - {*_MACHINE, *earlier.FIELDS})
    if unknown:
        raise FactsError(f"has unknown fields: {', '.join(sorted(unknown))}")
    if derived is None and not prose.get("declared"):
        raise FactsError("is documented, but no release knows it; say `declared = true` if it is read elsewhere")
    spans = _declared(prose) if derived is None else _joined([_renamed(span) for span in derived], prose)
    if all(is_gone(span) for span in spans):
        spans[0] |= {name: _listed(name, prose[name]) for name in _MACHINE if name in prose}
    return {"spans": spans, **{name: _listed(name, prose[name]) for name in _PLAIN if name in prose}}


def _declared(prose: Table) -> list[dict[str, Any]]:
    if "since" not in prose:
        raise FactsError("is declared without `since`")
    first = {"from": prose["since"], "validated": "elsewhere"}
    if prose.get("unknown_keys"):
        first["unknown_keys"] = prose["unknown_keys"]
    last = [{"from": prose["until"], "absent": True}] if "until" in prose else []
    return [_completed(span, prose) for span in earlier.split([first, *last], prose)]


def _joined(derived: list[dict[str, Any]], prose: Table) -> list[dict[str, Any]]:
    """Return the spans with the documentation filled in, except for limits that the code of some release states itself.

    Where it states none in the others, these had none; where it states other ones than today, these held.
    """
    today = {name: span[name] for span in derived for name in _LIMITS if name in span}
    spans = earlier.split(derived, prose)
    return [_completed(span, {name: prose[name] for name in prose if _applies(name, span, today)}) for span in spans]


def _applies(name: str, span: Table, today: Table) -> bool:
    """Return whether what the documentation says of a limit holds for a span; anything but a limit always does."""
    if name not in today:
        return True
    if not today.keys() & span.keys():
        return False
    return name not in span or _same(span[name], today[name])


def _same(one: object, other: object) -> bool:
    """Return whether two limits are the same; the order of a closed list does not matter."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(value in other for value in one)
    return one == other


def _renamed(span: Table) -> dict[str, Any]:
    named = {_DERIVED_NAMES.get(name, name): value for name, value in span.items()}
    element = named.pop("items", None)
    if element is not None:
        named |= {inner: element[name] for name, inner in (("type", "items"), ("enum", "item_enum")) if name in element}
    return named


def _completed(span: dict[str, Any], prose: Table) -> dict[str, Any]:
    """Fill what the code of DeepSpeed does not say from the documentation.

    Types are the exception: the documentation may widen what a pydantic annotation says, where a validator before it
    takes more. Raises FactsError where the two contradict each other.
    """
    if is_gone(span):
        return {name: span[name] for name in ("from", "absent", "rejected") if span.get(name)}
    moved, prose = earlier.moved(prose, span["from"]), earlier.at(prose, span["from"])
    done = {name: value for name, value in span.items() if value is not None or name == "default"}
    checked = done.get("validated") == "pydantic"
    if done.get("validated") == "read" and not str(done.get("source", "")).endswith(_CONFIG_FILES):
        done["validated"] = "elsewhere"
    if checked:
        done |= {"any_type": True} if "type" not in done else {}
        done |= (
            {"enum_at_use": True} if "enum" in prose and "enum" not in done and prose.get("enum_at_use", True) else {}
        )
    for name in _MACHINE:
        if name not in prose or (name == "default" and done.get("default") is not None):
            continue
        value = _listed(name, prose[name])
        if checked and name in done and name != "type" and done[name] is not None:
            if done[name] != value:
                raise FactsError(f"{name} is documented as {value}, the code of {span['from']} says {done[name]}")
            continue
        if checked and name == "type" and not set(done.get("type", ())) - {"null"} <= set(value):
            raise FactsError(f"type is documented as {value}, the code of {span['from']} says {done['type']}")
        done[name] = value
    if prose.get("absent_only"):
        done.pop("default", None)
    elif "type" in done and done.get("default", 0) is None and "null" not in done["type"]:
        done["type"] = [*done["type"], "null"]
    return done | moved


def _listed(name: str, value: Any) -> Any:  # noqa: ANN401 - whatever the TOML file holds
    return [value] if name in {"type", "items", "source", "successor"} and isinstance(value, str) else value


def _mark_sections(found: Mapping[str, Records]) -> None:
    """Mark the keys that hold other keys."""
    holders = {
        holder.removesuffix(paths.ANY_ELEMENT) for _, path, _ in every(found) for holder in paths.ancestors(path)
    }
    for _, path, record in every(found):
        if path in holders or record.get("alias_of") in holders:
            record["section"] = True
    known = {path for _, path, _ in every(found)}
    missing = {holder for holder in holders if holder not in known and not holder.endswith(paths.ANY_NAME)}
    if missing:
        raise FactsError(f"keys whose section is not documented: {', '.join(sorted(missing))}")


def newest(spans: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the facts of the newest release, or None when it no longer has the key."""
    last = max(spans, key=lambda span: order(span["from"]))
    return None if is_gone(last) else last
