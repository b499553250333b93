"""What messages mean, joined with the releases that give them: ``messages.toml`` and ``messages/*.json``."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from dsmigrate.facts.sources import FactsError, Table, read_toml

TABLE = "messages.toml"
_FIELDS = frozenset(
    {"package", "says", "text", "printed", "warned", "python", "raises", "cause", "cure", "keys", "codes"}
)
_PARAMETERS = ("optimizer.params.", "scheduler.params.")
_LONGEST = 420


def compiled(folder: Path, keys: Collection[str]) -> dict[str, Any]:
    """Return the content of the compiled file; ``folder`` is ``schemas/deepspeed``, ``keys`` are all that are known.

    Raises FactsError for an entry whose text no release gives, for a text that two entries take, and for an entry that
    lacks something or names a key that is none.
    """
    entries = read_toml(folder / TABLE)
    derived = {package: _derived(folder, package) for package in {entry["package"] for entry in entries.values()}}
    taken: dict[tuple[str, str], str] = {}
    problems: list[str] = []
    found: dict[str, Any] = {}
    for name, entry in entries.items():
        texts = derived[entry["package"]]["texts"]
        problems += [f"{TABLE}: {name}: {problem}" for problem in _problems(entry, texts, keys)]
        own = {text: texts[text] for text in texts if _is_of(text, entry)}
        for text in own:
            other = taken.setdefault((entry["package"], text), name)
            if other != name:
                problems.append(f"{TABLE}: {name} and {other} both take {text!r}")
        kept = {field: entry[field] for field in ("package", "cause", "cure", "keys", "codes") if field in entry}
        found[name] = {**kept, "texts": own}
    if problems:
        raise FactsError("\n".join(problems))
    releases = {package: [said["releases"][0], said["releases"][-1]] for package, said in sorted(derived.items())}
    return {"releases": releases, "entries": found}


def spoken(folder: Path) -> Iterator[str]:
    """Yield what the entries say."""
    for entry in read_toml(folder / TABLE).values():
        yield from (entry["cause"], entry["cure"])


def _derived(folder: Path, package: str) -> Mapping[str, Any]:
    content = json.loads((folder / "messages" / f"{package}.json").read_text(encoding="utf-8"))
    assert isinstance(content, dict)  # noqa: S101 - our own files
    return content


def _is_of(text: str, entry: Table) -> bool:
    return text in _written(entry) or any(piece in text for piece in entry.get("says", ()))


def _written(entry: Table) -> list[str]:
    written = [text for field in ("text", "printed", "warned") for text in entry.get(field, ())]
    return [*written, *(line["text"] for line in entry.get("python", ()))]


def _problems(entry: Table, texts: Mapping[str, Any], keys: Collection[str]) -> Iterator[str]:
    unknown = entry.keys() - _FIELDS
    if unknown:
        yield f"has unknown fields: {', '.join(sorted(unknown))}"
    for piece in entry.get("says", ()):
        if not any(piece in text for text in texts):
            yield f"no release says {piece!r}"
    for line in entry.get("python", ()):
        lacks = sorted({"text", "line", "raises"} - line.keys())
        if lacks:
            yield f"python lacks {', '.join(lacks)}"
    for text in _written(entry):
        if text not in texts:
            yield f"no release says {text!r}: run python -m dsmigrate.derivation messages"
    for field in ("cause", "cure"):
        if not 0 < len(entry.get(field, "")) <= _LONGEST:
            yield f"{field} has {len(entry.get(field, ''))} characters, of at most {_LONGEST}"
    for key in entry.get("keys", ()):
        if key not in keys and not key.startswith(_PARAMETERS):
            yield f"{key} is no key"
