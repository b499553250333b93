"""Known bugs: what ``known-bugs.toml`` and ``frameworks.toml`` must hold, and what of them the package loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dsmigrate.facts.sources import Table

NEEDED = frozenset({"what", "first", "severity", "effect", "keys", "source", "example", "signs"})
FIELDS = NEEDED | {"last", "when", "when_any", "set", "remove", "ran"}
OF_PACKAGES = frozenset({"package", "deepspeed", "unless", "usual_until", "through"})
COMPARISONS = frozenset({"not", "above", "below", "given"})
LONGEST = 160
_SEVERITIES = frozenset({"error", "warning", "info"})
_EFFECTS = frozenset({"rejected", "crash", "risky", "ignored", "misread", "slow", "memory"})
_SIGN = frozenset({"file", "has", "lacks"})
_DEVELOPERS = frozenset({"signs"})
"""Fields that only ``python -m dsmigrate.derivation bugs`` reads."""


def compiled(bugs: Mapping[str, Table], releases: Sequence[str]) -> dict[str, Any]:
    """Return what is loaded of each bug, with the release that no longer has it."""
    return {name: _compiled(bug, releases) for name, bug in bugs.items()}


def _compiled(bug: Table, releases: Sequence[str]) -> dict[str, Any]:
    found = {field: value for field, value in bug.items() if field not in _DEVELOPERS}
    if "last" in bug:
        found["fixed"] = releases[releases.index(bug["last"]) + 1]
    return found


def compiled_of_packages(found: Mapping[str, Table], packages: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return what is loaded of each difference between releases of packages."""
    return {name: _compiled(one, packages[one["package"]]) for name, one in found.items()}


def problems_of_packages(
    found: Mapping[str, Table], packages: Mapping[str, Sequence[str]], releases: Sequence[str], known: set[str]
) -> list[str]:
    """Return what is wrong with frameworks.toml; ``packages`` are their releases, ``releases`` those of DeepSpeed."""
    wrong = []
    for name, one in found.items():
        package, since = str(one.get("package")), one.get("deepspeed", releases[0])
        if package not in packages or since not in releases:
            wrong.append(f"frameworks.toml: {name}: no such package {package}, or release {since}")
            continue
        bare = {field: value for field, value in one.items() if field not in OF_PACKAGES}
        wrong += [f"frameworks.toml: {name}: {problem}" for problem in _of(bare, packages[package], known)]
    return wrong


def newest(bugs: Mapping[str, Table], releases: Sequence[str]) -> str:
    """Return the last release that has any of the bugs."""
    return releases[max(releases.index(bug.get("last", releases[-1])) for bug in bugs.values())]


def problems(bugs: Mapping[str, Table], releases: Sequence[str], known: set[str]) -> list[str]:
    """Return what is wrong with the file, a line each; ``known`` is the path of every key."""
    return [f"known-bugs.toml: {name}: {wrong}" for name, bug in bugs.items() for wrong in _of(bug, releases, known)]


def _of(bug: Table, releases: Sequence[str], known: set[str]) -> Iterator[str]:
    missing, unknown = NEEDED - bug.keys(), bug.keys() - FIELDS
    if missing or unknown:
        yield f"lacks {', '.join(sorted(missing)) or 'nothing'}, has the unknown {', '.join(sorted(unknown)) or '-'}"
        return
    first, last = bug["first"], bug.get("last", releases[-1])
    if not {first, last} <= set(releases) or releases.index(first) > releases.index(last):
        yield f"{first} to {last} are no releases in their order"
    elif "last" in bug and last == releases[-1]:
        yield f"{last} is the newest release: leave `last` out"
    if bug["severity"] not in _SEVERITIES or bug["effect"] not in _EFFECTS:
        yield f"severity {bug['severity']} or effect {bug['effect']} is none"
    if len(bug["what"]) > LONGEST or bug["what"].endswith("."):
        yield f"`what` has {len(bug['what'])} characters, at most {LONGEST}, and no full stop"
    conditions = [bug.get("when", {}), *bug.get("when_any", ())]
    if not any(conditions):
        yield "a bug that no config is spared"
    named = {path for one in conditions for path in one} | {*bug["keys"], *bug.get("set", {}), *bug.get("remove", ())}
    for path in sorted(named - known):
        if not path.startswith(("optimizer.params.", "scheduler.params.")):
            yield f"refers to {path}, which is no key"
    for wanted in (wanted for one in conditions for wanted in one.values()):
        if not isinstance(wanted, list) and not (isinstance(wanted, Mapping) and wanted.keys() <= COMPARISONS):
            yield f"{wanted!r} is neither a list of values nor a comparison"
    yield from _signs(bug["signs"])


def _signs(signs: object) -> Iterator[str]:
    if not isinstance(signs, list) or not signs:
        yield "no sign to verify it by"
        return
    for sign in signs:
        every = sign if isinstance(sign, list) else [sign]
        for one in every:
            if not one.keys() <= _SIGN or not (one.get("has") or one.get("lacks")) or ".." in one.get("file", ".."):
                yield f"{one!r} is no sign"
