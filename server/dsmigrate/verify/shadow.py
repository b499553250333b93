"""A copy of a project to run scripts in, so that checkpoints and logs of a verification touch nothing.

Small files are copied, large ones linked; the harness replaces a link by a copy before something is written to it.
What lies beside the project is reachable as ``..``, as before. Folders with very many entries (data, mostly) are
linked whole.
"""

from __future__ import annotations

import os
import shutil
from collections import deque
from pathlib import Path

from dsmigrate.files.paths import resolved
from dsmigrate.files.reading import MAX_BYTES, read
from dsmigrate.files.text import SourceError

COPIED_BYTES = 1 << 18
CROWDED = 1000
ENTRIES = 20_000
_LINKED_WHOLE = frozenset({".git", ".hg", "node_modules", "__pycache__", "site-packages", ".venv", "venv"})
_ALWAYS_COPIED = (".py", ".json", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".sh")


def shadow(project: Path, place: Path) -> Path:
    """Make a copy of ``project`` below ``place`` and return its folder, which has the project's name."""
    project = resolved(project)
    copy = place / (project.name or "root")
    copy.mkdir(parents=True)
    if project.parent != project:
        _link_neighbours(project, place)
    lay_over(project, copy)
    return copy


def lay_over(source: Path, target: Path) -> None:
    """Put what lies in ``source`` over what lies in ``target``, folder by folder, nearest first."""
    budget = ENTRIES
    waiting = deque([(resolved(source), target)])
    while waiting:
        folder, copy = waiting.popleft()
        entries = _entries(folder)
        budget -= len(entries)
        for entry in entries:
            name = copy / entry.name
            try:
                is_folder = entry.is_dir(follow_symlinks=True)
            except OSError:  # a link through a folder that may not be entered
                continue
            if not is_folder:
                _file(entry, name)
            elif target.is_relative_to(resolved(Path(entry.path))):
                continue  # the copies themselves
            elif entry.name in _LINKED_WHOLE or budget < 0 or _is_crowded(Path(entry.path)):
                _link(Path(entry.path), name)
            else:
                if name.is_symlink():
                    name.unlink()
                name.mkdir(exist_ok=True)
                waiting.append((Path(entry.path), name))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []


def _is_crowded(folder: Path) -> bool:
    return len(_entries(folder)) > CROWDED


def _file(entry: os.DirEntry[str], copy: Path) -> None:
    path = Path(entry.path)
    if not path.is_file():  # sockets, pipes, links that lead nowhere
        return
    if copy.is_symlink() or copy.exists():
        copy.unlink()
    try:
        copy.write_bytes(read(path, MAX_BYTES if path.suffix in _ALWAYS_COPIED else COPIED_BYTES))
        shutil.copystat(path, copy)
    except SourceError:  # too large, or not for reading
        _link(path, copy)


def _link(path: Path, link: Path) -> None:
    if not link.exists() and not link.is_symlink():
        link.symlink_to(resolved(path))


def _link_neighbours(project: Path, place: Path) -> None:
    neighbours = _entries(project.parent)
    if len(neighbours) <= CROWDED:
        for entry in neighbours:
            if entry.name != project.name and not place.is_relative_to(Path(entry.path)):
                _link(Path(entry.path), place / entry.name)
