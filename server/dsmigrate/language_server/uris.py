"""Addresses of documents and the files they stand for."""

from __future__ import annotations

from pathlib import Path

from pygls import uris


def path_of(uri: str) -> Path | None:
    """Return the file that an address stands for, None for one that is no file (``untitled:``, ``git:``)."""
    if not uri.startswith("file:"):
        return None
    try:
        found = uris.to_fs_path(uri)
    except ValueError:
        return None
    return Path(found) if found and "\0" not in found else None


def uri_of(path: Path) -> str:
    """Return the address of a file."""
    return uris.from_fs_path(str(path)) or path.as_uri()


def name_of(uri: str) -> str:
    """Return the last part of an address: what the document is called."""
    path = path_of(uri)
    return path.name if path is not None else uri.rpartition("/")[2].rpartition(":")[2]
