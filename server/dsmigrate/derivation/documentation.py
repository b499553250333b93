"""Which keys are documented: the tables of ``schemas/deepspeed/keys/*.toml``."""

from __future__ import annotations

import sys
from pathlib import Path

from dsmigrate.derivation.errors import DerivationError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OTHERS = frozenset({"optimizer_types", "scheduler_types"})
"""Files whose tables are types, not keys."""


def documented(folder: Path) -> set[str]:
    """Return the paths that have a table; raises DerivationError for a file that is not TOML."""
    found: set[str] = set()
    for file in sorted(folder.glob("*.toml")):
        if file.stem not in OTHERS:
            try:
                found |= tomllib.loads(file.read_text(encoding="utf-8")).keys()
            except tomllib.TOMLDecodeError as error:
                raise DerivationError(f"{file.name}: {error}") from None
    return found
