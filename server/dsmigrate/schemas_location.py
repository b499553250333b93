"""The facts under ``schemas/``, inside an installed package or at the root of a checkout."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def schema_json(name: str) -> Any:  # noqa: ANN401 - as the file has it
    """Return what ``schemas/<name>``, a JSON file, holds; raises FileNotFoundError when the installation lacks it."""
    return json.loads(schema_file(name).read_bytes())


def schema_toml(name: str) -> dict[str, Any]:
    """Return what ``schemas/<name>``, a TOML file, holds; raises FileNotFoundError when the installation lacks it."""
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415 - few commands need it
    else:
        import tomli as tomllib  # noqa: PLC0415 - the same library under its former name

    return tomllib.loads(schema_file(name).read_text(encoding="utf-8"))


def schema_file(name: str) -> Path:
    """Return the path of ``schemas/<name>``; raises FileNotFoundError when the installation lacks it."""
    package = Path(__file__).resolve().parent
    for folder in (package / "schemas", package.parent.parent / "schemas"):
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(f"schemas/{name} is missing from this installation of dsmigrate")
