"""Files as git has them: ``REV:path``, and the last committed state of a file."""

from __future__ import annotations

import subprocess
from pathlib import Path

from dsmigrate.diff.job import Source

_LARGEST = 16 << 20
_PATIENCE = 30
"""Seconds that git may take."""


class GitError(Exception):
    """git is missing, or has no such revision or file; the message says which, and what may help."""


def is_revision(text: str) -> bool:
    """Return whether a text means a file in a revision: ``HEAD~1:configs/ds.json``, no file and no drive."""
    revision, colon, path = text.partition(":")
    drive = len(revision) == 1 and path[:1] in {"/", "\\"}
    return bool(colon and revision and path) and not drive and not Path(text).exists()


def at_revision(text: str, folder: Path) -> Source:
    """Return the file that ``REV:path`` means; a path starting with ``./`` is relative to ``folder``.

    Raises GitError where there is none.
    """
    revision, _, path = text.partition(":")
    if revision.startswith("-"):
        raise GitError(f"{revision} is no revision")
    data = _git(folder, "show", f"{revision}:{path}")
    if len(data) > _LARGEST:
        raise GitError(f"{text} has {len(data) >> 20} MiB, which is no config")
    return Source(text, data, folder)


def committed(file: Path, revision: str = "HEAD") -> Source:
    """Return a file as a revision has it; raises GitError where it is in none."""
    return at_revision(f"{revision}:./{file.name}", file.parent)


def _git(folder: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(folder), *arguments]
    try:
        run = subprocess.run(command, capture_output=True, check=False, timeout=_PATIENCE)  # noqa: S603 - no shell
    except FileNotFoundError:
        raise GitError("git is not installed, or not on the path") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git took longer than {_PATIENCE} seconds") from None
    if run.returncode:
        said = run.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitError(_hint(said[0].removeprefix("fatal: ") if said else f"git {arguments[0]} failed", folder))
    return run.stdout


def _hint(said: str, folder: Path) -> str:
    shallow = folder / ".git" / "shallow"
    if "invalid object name" in said and shallow.exists():
        return f"{said}; this clone is shallow: `git fetch --unshallow` gets the rest"
    return said
