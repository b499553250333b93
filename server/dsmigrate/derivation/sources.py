"""Where the sources of releases are: folders that somebody unpacked, or a cache filled from a package index."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dsmigrate.derivation.archive import NATIVE, PACKAGE, SETUP, extract
from dsmigrate.derivation.errors import DerivationError
from dsmigrate.derivation.index import fetch_sdist
from dsmigrate.derivation.versions import parsed

_ASK_PIP = """
from pip._internal.commands import create_command
print(create_command("download").parse_args([])[0].index_url)
"""


def default_index() -> str:
    """Return the index that pip uses: PIP_INDEX_URL, what pip is configured for, or its default.

    Raises DerivationError when there is no pip to ask.
    """
    named = os.environ.get("PIP_INDEX_URL")
    if named:
        return named
    asked = subprocess.run(  # noqa: S603 - our own text
        [sys.executable, "-c", _ASK_PIP], capture_output=True, text=True, check=False
    )
    if asked.returncode or not asked.stdout.strip():
        raise DerivationError("pip names no package index; give one with --index-url")
    return asked.stdout.strip()


def default_cache() -> Path:
    """Return the folder for fetched sources: DSMIGRATE_SDISTS, else one below the user's cache folder."""
    named = os.environ.get("DSMIGRATE_SDISTS")
    if named:
        return Path(named)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "dsmigrate" / "sdists"


@dataclass(frozen=True)
class Sources:
    """How to get at a release: ``folder`` with unpacked releases, or ``cache`` filled from ``index_url``."""

    cache: Path
    index_url: str
    folder: Path | None = None

    def root(self, release: str) -> Path:
        """Return the folder that holds ``deepspeed`` of a release, fetched first if need be.

        Raises DerivationError when the folder lacks the release, or it cannot be fetched.
        """
        parsed(release)
        if self.folder is not None:
            root = self.folder / release
            if not (root / PACKAGE / "__init__.py").is_file():
                raise DerivationError(f"DeepSpeed {release}: {root} does not hold its unpacked sources")
            return root
        root = self.cache / release
        if not all((root / part).exists() for part in (PACKAGE, NATIVE, SETUP)):
            extract(fetch_sdist(release, self.index_url), root, release)
        return root

    def roots(self, releases: Iterable[str]) -> dict[str, Path]:
        """Return release to folder for many releases."""
        return {release: self.root(release) for release in releases}
