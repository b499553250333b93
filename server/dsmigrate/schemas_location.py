"""Where the facts under ``schemas/`` lie: inside an installed package, or at the root of a checkout."""

from __future__ import annotations

from pathlib import Path


def schema_file(name: str) -> Path:
    """Return the path of ``schemas/<name>``; raises FileNotFoundError when the installation lacks it."""
    package = Path(__file__).resolve().parent
    for folder in (package / "schemas", package.parent.parent / "schemas"):
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(f"schemas/{name} is missing from this installation of dsmigrate")
