"""Telling git about the diff: its config in one repository, and the files that it is for."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from dsmigrate.diff.git import GitError, git, root_of
from dsmigrate.files.reading import read_if_there
from dsmigrate.files.text import SourceError
from dsmigrate.files.writing import Write, write_all

FORMS = ("command", "textconv", "difftool")
"""What git can be told: to show what a change does, to show normalised lines, to have a tool beside its own diff."""

_DRIVER = "diff.deepspeed"
_PATTERNS = ("*.json", "*.jsonc", "*.json5", "*.hjson")
_ATTRIBUTES = ".gitattributes"


def set_up(form: str, folder: Path) -> Iterator[str]:
    """Write the config of git for one of ``FORMS`` into the repository around ``folder``, and yield what is done.

    Driver and textconv need files that carry the attribute ``diff=deepspeed``: lines are added to ``.gitattributes``
    at the top of the working tree for the suffixes of configs that have no ``diff`` attribute yet. A second run changes
    nothing. Raises GitError outside of a working tree, and where git or the file system refuses.
    """
    top = root_of(folder)
    if top is None:
        raise GitError("this repository is bare: git shows no diff of a working tree here")
    program = _program()
    if form == "difftool":
        yield _set(
            folder, "difftool.dsmigrate.cmd", f'{program} diff --git-driver "$MERGED" "$LOCAL" . . "$REMOTE" . .'
        )
        return
    if form == "command":
        yield _set(folder, f"{_DRIVER}.command", f"{program} diff --git-driver")
    else:
        if _get(folder, f"{_DRIVER}.command"):
            git(folder, "config", "--local", "--unset-all", f"{_DRIVER}.command")
            yield f"unset {_DRIVER}.command, which would win"
        yield _set(folder, f"{_DRIVER}.textconv", f"{program} diff --textconv")
        yield _set(folder, f"{_DRIVER}.cachetextconv", "true")
    yield _name_files(top)


def _program() -> str:
    """Return how git, which has a shell of its own, starts dsmigrate."""
    return "dsmigrate" if shutil.which("dsmigrate") else f"{shlex.quote(Path(sys.executable).as_posix())} -m dsmigrate"


def _set(folder: Path, name: str, value: str) -> str:
    git(folder, "config", "--local", "--replace-all", name, value)
    return f"set {name} to: {value}"


def _get(folder: Path, name: str) -> str:
    try:
        return os.fsdecode(git(folder, "config", "--local", "--get", name)).strip()
    except GitError:
        return ""


def _name_files(top: Path) -> str:
    """Add a line to ``.gitattributes`` for each suffix without a driver, and return what has been done."""
    told = os.fsdecode(
        git(top, "check-attr", "-z", "diff", "--", *(pattern.replace("*", "ds") for pattern in _PATTERNS))
    )
    states = told.split("\0")[2::3]
    lines = [
        f"{pattern} diff=deepspeed" for pattern, state in zip(_PATTERNS, states, strict=True) if state == "unspecified"
    ]
    if not lines:
        return f"{_ATTRIBUTES} names the files already"
    file = top / _ATTRIBUTES
    try:
        before = read_if_there(file)
        joint = b"" if not before or before.endswith(b"\n") else b"\n"
        added = "".join(f"{line}\n" for line in lines).encode()
        write_all([Write(file, (before or b"") + joint + added, before, top)])
    except SourceError as error:
        raise GitError(f"{_ATTRIBUTES}: {error.message}") from None
    except OSError as error:
        raise GitError(f"{_ATTRIBUTES} cannot be written: {error}") from None
    return f"added to {_ATTRIBUTES}, which is to be committed: {', '.join(lines)}"
