"""What completion needs beside the keys, in one file: starters, how common keys are, what is refused together."""

from __future__ import annotations

from typing import Any

from dsmigrate.facts.sources import FactsError, Sources, Table

_FIELDS = frozenset({"code", "when", "since", "until", "consumers"})
_OPERATORS = frozenset({"not", "given", "null", "auto", "above", "below", "is", "odd", "splits"})


def completion(sources: Sources) -> dict[str, Any]:
    """Return the content of ``compiled/completion.json``; raises FactsError for a refusal that cannot be read."""
    return {
        "common": sources.common.get("ranks", {}),
        "refused": [_refusal(table) for table in sources.refused.get("refused", ())],
        "files": sources.snippets.get("files", {}),
        "sections": {path: _alone(starters) for path, starters in sources.snippets.get("sections", {}).items()},
        "names": sources.snippets.get("names", {}),
    }


def _alone(starters: Table) -> dict[str, Any]:
    """Return the starters of a section without what only their test needs."""
    return {
        label: {name: value for name, value in starter.items() if name != "with"} for label, starter in starters.items()
    }


def _refusal(table: Table) -> dict[str, Any]:
    where = f"refused.toml: {table.get('code')} {dict(table.get('when', {}))}"
    unknown = table.keys() - _FIELDS
    if unknown or "code" not in table or not table.get("when"):
        raise FactsError(f"{where}: needs `code` and `when`, and has {', '.join(sorted(unknown)) or 'nothing else'}")
    return {**table, "when": {path: _condition(wanted, where) for path, wanted in table["when"].items()}}


def _condition(wanted: object, where: str) -> dict[str, Any]:
    """Return a condition with its operator: a scalar or a list is what the value is one of."""
    if isinstance(wanted, dict):
        if len(wanted) != 1 or not wanted.keys() <= _OPERATORS:
            raise FactsError(f"{where}: a condition has one of {', '.join(sorted(_OPERATORS))}")
        return {name: _listed(value) if name == "not" else value for name, value in wanted.items()}
    return {"in": _listed(wanted)}


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]
