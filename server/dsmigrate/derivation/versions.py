"""Order and shape of release numbers."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.version import InvalidVersion, Version

from dsmigrate.derivation.errors import DerivationError


def parsed(text: str) -> Version:
    """Return a release number; raises DerivationError for anything else, so that it can stand in a path."""
    try:
        return Version(text)
    except InvalidVersion:
        raise DerivationError(f"{text!r} is not a release of DeepSpeed; write one like 0.19.8") from None


def in_order(releases: Iterable[str]) -> list[str]:
    """Return releases, oldest first."""
    return sorted(releases, key=Version)
