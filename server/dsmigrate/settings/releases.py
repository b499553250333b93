"""The DeepSpeed releases that are known, and which of them a text means."""

from __future__ import annotations

import functools
from itertools import groupby

from dsmigrate.schemas_location import schema_json
from dsmigrate.settings.errors import SettingsError


@functools.cache
def releases() -> tuple[str, ...]:
    """Return every known DeepSpeed release, oldest first."""
    found = schema_json("deepspeed/releases.json")["releases"]
    return tuple(str(release) for release in found)


def check_release(text: str, where: str) -> str:
    """Return the known release that ``text`` means: itself, or with ``.0`` added ("0.9" is 0.9.0).

    Raises SettingsError, which starts with ``where`` and lists the releases.
    """
    asked = text.strip().removeprefix("v")
    for release in (asked, f"{asked}.0"):
        if release in releases():
            return release
    raise SettingsError(f"{where} {text!r} is not a DeepSpeed release from 0.9 on; known: {listed()}")


def listed() -> str:
    """Return the known releases in short: "0.9.0-0.9.5, 0.10.0-0.10.3, …"."""
    series = [list(group) for _, group in groupby(releases(), key=lambda release: release.rsplit(".", 1)[0])]
    return ", ".join(group[0] if len(group) == 1 else f"{group[0]}-{group[-1]}" for group in series)
