"""``python -m dsmigrate.facts.common FOLDER``: count how often keys occur in a folder of configs, as coarse ranks.

Completion offers what is common first. What is kept is a rank for each key, and no text of any config.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from dsmigrate.document import DocumentError, parse_bytes
from dsmigrate.knowledge import Knowledge, knowledge
from dsmigrate.knowledge.wording import value_name

TARGET = Path("schemas") / "deepspeed" / "common.json"
RANKS = ((0.9, 1), (0.5, 2), (0.2, 3), (0.05, 4), (0.0, 5))
"""The least share of the sections that hold a key, and the rank for it."""
_DOUBT = 3
"""Sections without the key that are added to those that were seen: two sections are no evidence."""
_TYPED = ("optimizer", "scheduler")
_HEAD = (
    "Written by `python -m dsmigrate.facts.common`. How often a key stands in its section, among real configs: "
    "1 in nine of ten or more, 2 in half, 3 in a fifth, 4 in a twentieth, 5 in at least one. `key=value` counts a "
    "value of a closed list, or a type, among the sections that have the key; parameters among those with `params`."
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Count the keys of the configs in FOLDER and write schemas/deepspeed/common.json."""
    ranks, files = counted(folder)
    content = {"about": _HEAD, "files": files, "ranks": ranks}
    TARGET.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
    click.echo(f"wrote {TARGET}: {len(ranks)} keys of {files} configs")


def counted(folder: Path) -> tuple[dict[str, int], int]:
    """Return the rank of each key that occurs, by its path, and the number of configs that could be read."""
    known = knowledge()
    seen: Counter[str] = Counter()
    held: Counter[str] = Counter()
    files = 0
    for path in sorted(folder.iterdir()):
        try:
            config = parse_bytes(path.read_bytes()).value()
        except (DocumentError, OSError):
            continue
        if not isinstance(config, Mapping) or not config:
            continue
        files += 1
        found = {*_keys(config, (), known), *_types(config)}
        seen.update(key for key, _ in found)
        held.update({section for _, section in found})
    return {key: _rank(count, held[_holder(key)]) for key, count in sorted(seen.items())}, files


def _keys(section: Mapping[str, object], path: tuple[str, ...], known: Knowledge) -> Iterator[tuple[str, str]]:
    """Yield the canonical path of each key below ``section``, with that of its section."""
    for name, value in section.items():
        here = (*path, name)
        if path in {(kind, "params") for kind in _TYPED}:
            if name in _parameters(known, path[0]):
                yield ".".join(here), ".".join(path)
            continue
        if known.key(here) is None:
            continue
        canonical = known.canonical(here)
        yield canonical, _holder(canonical)
        key = known.key(canonical)
        if key is not None and not isinstance(value, Mapping | list) and value in key.enum:
            yield f"{canonical}={value_name(value)}", canonical
        if isinstance(value, Mapping):
            yield from _keys(value, here, known)


def _types(config: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the types that the config names, as ``optimizer.type=AdamW``."""
    known = knowledge()
    for kind, look in zip(_TYPED, (known.optimizer, known.scheduler), strict=True):
        section = config.get(kind)
        name = section.get("type") if isinstance(section, Mapping) else None
        facts = look(name) if isinstance(name, str) else None
        if facts is not None:
            yield f"{kind}.type={facts.name}", f"{kind}.type"


@functools.cache
def _parameters(known: Knowledge, kind: str) -> frozenset[str]:
    types = known.every_optimizer() if kind == "optimizer" else known.every_scheduler()
    return frozenset(name for facts in types for name in facts.parameters)


def _holder(key: str) -> str:
    """Return what a key is counted among: its section, or for a value its key."""
    name, is_value, _ = key.partition("=")
    return name if is_value else name.rpartition(".")[0]


def _rank(count: int, held: int) -> int:
    share = count / (held + _DOUBT)
    return next(rank for least, rank in RANKS if share >= least)


if __name__ == "__main__":
    main()
