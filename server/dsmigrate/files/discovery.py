"""From the paths on a command line to the Python files to work on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

SKIPPED_DIRECTORIES = frozenset({"__pycache__", "__pypackages__", "node_modules", "site-packages"})
_MARKS_OF_AN_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")


@dataclass(frozen=True, slots=True)
class Found:
    """One file to work on.

    ``path`` is as the person wrote it (or the directory they wrote, joined with the way down); ``root`` is the
    directory no write may leave: the directory on the command line, or the parent of the file on it.
    """

    path: Path
    root: Path


def discover(paths: Iterable[Path]) -> tuple[Found, ...]:
    """Return each file once: named files as they stand, directories as their ``*.py`` files, sorted, at any depth.

    Within directories, hidden names, Python environments and the names in ``SKIPPED_DIRECTORIES`` are passed over,
    and so are symlinks: what a link leads to is found at its own place or lies outside. A named file need not exist;
    reading it will say so.
    """
    seen: dict[str, Found] = {}
    for path in paths:
        files = _walk(path) if path.is_dir() else (Found(path, path.parent),)
        for found in files:
            seen.setdefault(os.path.realpath(found.path), found)
    return tuple(seen.values())


def _walk(root: Path) -> Iterator[Found]:
    for folder, names, files in os.walk(root):
        here = Path(folder)
        names[:] = sorted(name for name in names if not skipped(here / name))
        for name in sorted(files):
            file = here / name
            if name.endswith(".py") and not name.startswith(".") and not file.is_symlink():
                yield Found(file, root)


def skipped(folder: Path) -> bool:
    """Return whether a directory is passed over: hidden, an environment, a link, or in ``SKIPPED_DIRECTORIES``."""
    return (
        folder.name.startswith(".")
        or folder.name in SKIPPED_DIRECTORIES
        or folder.is_symlink()
        or any((folder / mark).exists() for mark in _MARKS_OF_AN_ENVIRONMENT)
    )
