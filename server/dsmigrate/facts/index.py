"""The index: what is known without reading any section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsmigrate.facts import known_bugs
from dsmigrate.facts.compile import Records, every, newest
from dsmigrate.facts.sources import Sources
from dsmigrate.knowledge import paths


def index(sources: Sources, found: Mapping[str, Records], types: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the index: releases and the last with bugs, files, paths, second spellings, names of types, consumers."""
    aliases: dict[str, str] = {}
    every_path = sorted(path for _, path, _ in every(found))
    for _, path, record in every(found):
        if "alias_of" in record:
            aliases[path] = record["alias_of"]
        field = (newest(record["spans"]) or {}).get("field")
        if field:
            aliases[f"{paths.parent(path)}.{field}"] = path
    return {
        "releases": list(sources.releases),
        "files": sorted(name for name in found if name != "top_level"),
        "paths": every_path,
        "aliases": dict(sorted(aliases.items())),
        "optimizers": sorted(types["optimizer_types"]),
        "schedulers": sorted(types["scheduler_types"]),
        "last_with_bugs": known_bugs.newest(sources.bugs, sources.releases),
        "consumers": {
            name: {"otherwise": facts["otherwise"], "fills": facts.get("fills", {})}
            | ({"filled_until": facts["filled_until"]} if "filled_until" in facts else {})
            for name, facts in sources.consumers.items()
        },
    }
