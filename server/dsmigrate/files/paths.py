"""Where a path leads, also one that leads nowhere."""

from __future__ import annotations

import os
from pathlib import Path


def resolved(path: Path) -> Path:
    """Return the absolute path without links; a link to itself, and what no system takes for a path, stay as they are.

    ``Path.resolve`` raises RuntimeError for the one, ValueError for the other.
    """
    try:
        return Path(os.path.realpath(path))
    except ValueError:  # a NUL
        return path.absolute()
