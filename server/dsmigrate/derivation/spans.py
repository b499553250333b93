"""Facts per release to spans of releases, and back.

A span is valid from the release it names to the one before the next span's. Its facts are complete: nothing is
inherited from the span before it. ``absent`` and ``rejected`` spans say that the key is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from packaging.version import Version

Facts = dict[str, Any]
ABSENT: Facts = {"absent": True}


def merge(per_release: Mapping[str, Mapping[str, Facts]], releases: Sequence[str]) -> dict[str, list[Facts]]:
    """Return path to spans; ``releases`` gives the order, and ``per_release`` must have each of them."""
    paths = sorted({path for facts in per_release.values() for path in facts})
    return {path: _spans([per_release[release].get(path) for release in releases], releases) for path in paths}


def _spans(facts: Sequence[Facts | None], releases: Sequence[str]) -> list[Facts]:
    found: list[Facts] = []
    before: Facts | None = None
    for release, now in zip(releases, facts, strict=True):
        if now != before:
            found.append({"from": release, **(ABSENT if now is None else now)})
        before = now
    return found


def at(spans: Sequence[Facts], release: str) -> Facts | None:
    """Return the facts of ``release``, or None when the key is absent from it."""
    wanted, valid = Version(release), None
    for span in spans:
        if Version(span["from"]) <= wanted:
            valid = span
    if valid is None or valid.get("absent"):
        return None
    return {name: value for name, value in valid.items() if name != "from"}


def expand(spans: Mapping[str, Sequence[Facts]], releases: Sequence[str]) -> dict[str, dict[str, Facts]]:
    """Return release to path to facts: the inverse of ``merge``."""
    found: dict[str, dict[str, Facts]] = {release: {} for release in releases}
    for path, history in spans.items():
        for release in releases:
            facts = at(history, release)
            if facts is not None:
                found[release][path] = facts
    return found


def stretches(there: Sequence[bool], releases: Sequence[str]) -> list[list[str]]:
    """Return the first and the last release of each stretch of releases that have something."""
    found: list[list[str]] = []
    before = False
    for now, release in zip(there, releases, strict=True):
        if now and not before:
            found.append([release, release])
        elif now:
            found[-1][1] = release
        before = now
    return found
