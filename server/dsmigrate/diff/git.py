"""Files as git has them: ``REV:path``, the last committed state of a file, many files at once.

The settings of a repository name programs that git starts. They came with the repository, so none of them runs here.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dsmigrate.diff.job import Source

_LARGEST = 16 << 20
_PATIENCE = 60
"""Seconds that git may take."""

_SWITCHED_OFF = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",  # post-index-change
    "protocol.allow=never",
    "log.showSignature=false",  # gpg.program
)
"""What git is told before the settings of a repository, which start programs."""

_FILTERS = "^filter\\..*\\.(clean|smudge|process)$"

_OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""What git tells its hooks and drivers about their own folder; it holds for no other one."""

_UNKNOWN = ("invalid object name", "unknown revision", "bad revision", "Invalid symmetric difference", "bad object")
"""How git says that a revision is not there."""

_UNREAD = ("could not fetch", "unable to read", "lazy fetching disabled")
"""How git says that a partial clone lacks an object."""


class GitError(Exception):
    """git is missing, or has no such revision or file; the message says which, and what may help."""


def is_revision(text: str) -> bool:
    """Return whether a text means a file in a revision: ``HEAD~1:configs/ds.json``, no file and no drive.

    Without a revision, ``:configs/ds.json``, it is what the index has: the file as it is staged.
    """
    revision, colon, path = text.partition(":")
    drive = len(revision) == 1 and path[:1] in {"/", "\\"}
    return bool(colon and path) and not drive and not Path(text).exists()


def at_revision(text: str, folder: Path) -> Source:
    """Return the file that ``REV:path`` means; a path starting with ``./`` is relative to ``folder``.

    Raises GitError where there is none.
    """
    revision, _, path = text.partition(":")
    if revision.startswith("-"):
        raise GitError(f"{revision} is no revision")
    data = git(folder, "show", "--no-textconv", "--no-ext-diff", f"{revision}:{path}")
    if len(data) > _LARGEST:
        raise GitError(f"{text} has {len(data) >> 20} MiB, which is no config")
    return Source(text, data, folder)


def committed(file: Path, revision: str = "HEAD") -> Source:
    """Return a file as a revision has it; raises GitError where it is in none."""
    return at_revision(f"{revision}:./{file.name}", file.parent)


def git(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    """Return what git prints, run in ``folder`` with ``given`` on its standard input; raises GitError if it fails.

    It starts no program that the repository names (hooks, filters, file system monitors, converters to text,
    transports) and fetches nothing.
    """
    if arguments[0] != "diff":
        return _git(folder, _SWITCHED_OFF, arguments, given)
    # Of the files of a working tree git compares what their filters make of them, so each filter is emptied.
    named = _git(folder, _SWITCHED_OFF, ("config", "-z", "--name-only", "--get-regexp", _FILTERS), allowed=(0, 1))
    filters = dict.fromkeys(os.fsdecode(named).split("\0")[:-1])
    for name in filters:
        if "=" in name:  # `-c` takes what is before the first = for the name
            raise GitError(f"the settings of this repository name a program {name}, which cannot be switched off")
    required = dict.fromkeys(f"{name.rpartition('.')[0]}.required=false" for name in filters)
    return _git(
        folder,
        (*_SWITCHED_OFF, *(f"{name}=" for name in filters), *required),
        ("diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", *arguments[1:]),
        given,
    )


def _git(
    folder: Path, settings: Iterable[str], arguments: Sequence[str], given: bytes = b"", allowed: Sequence[int] = (0,)
) -> bytes:
    here = os.path.samefile(folder, ".") if folder.exists() else False  # noqa: PTH121 - of a folder and the current one
    environment = {name: value for name, value in os.environ.items() if here or name not in _OF_A_HOOK}
    environment |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    # The first is known from git 2.45 on; the second holds over protocol.<name>.allow of the repository.
    environment |= {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}
    off = (word for setting in settings for word in ("-c", setting))
    command = ["git", "--no-pager", *off, *(() if here else ("-C", str(folder))), *arguments]
    try:
        run = subprocess.run(  # noqa: S603 - no shell
            command, input=given, capture_output=True, check=False, timeout=_PATIENCE, env=environment
        )
    except FileNotFoundError:
        raise GitError("git is not installed, or not on the path") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git took longer than {_PATIENCE} seconds") from None
    if run.returncode not in allowed:
        said = run.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitError(_hint(said, folder) if said else f"git {arguments[0]} failed")
    return run.stdout


def blobs(folder: Path, ids: Iterable[str]) -> Iterator[bytes]:
    """Yield the contents of blobs by their full ids, in order, from one process.

    Raises GitError for one that this clone lacks, and for one that is too large to be a config.
    """
    wanted = list(ids)
    if not wanted:
        return
    sizes = git(
        folder, "cat-file", "--batch-check=%(objectname) %(objectsize)", given="\n".join(wanted).encode() + b"\n"
    )
    for line in sizes.decode().splitlines():
        name, _, size = line.partition(" ")
        if not size.isdigit():
            raise GitError(f"this clone has no object {name}{_clone_hint(folder)}")
        if int(size) > _LARGEST:
            raise GitError(f"object {name} has {int(size) >> 20} MiB, which is no config")
    found = git(folder, "cat-file", "--batch", given="\n".join(wanted).encode() + b"\n")
    at = 0
    for _ in wanted:
        end = found.index(b"\n", at)
        length = int(found[at:end].rpartition(b" ")[2])
        yield found[end + 1 : end + 1 + length]
        at = end + 2 + length


def has_commit(folder: Path, revision: str) -> bool:
    """Return whether this clone has a commit; False where ``folder`` is in no repository too."""
    if not revision or revision.startswith("-"):
        return False
    try:
        git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except GitError:
        return False
    return True


def root_of(folder: Path) -> Path | None:
    """Return the top of the working tree, None in a bare repository; raises GitError outside of one."""
    inside = git(folder, "rev-parse", "--is-inside-work-tree").strip() == b"true"
    return Path(os.fsdecode(git(folder, "rev-parse", "--show-toplevel").rstrip(b"\n"))) if inside else None


def is_shallow(folder: Path) -> bool:
    """Return whether the repository around ``folder`` lacks history."""
    try:
        return git(folder, "rev-parse", "--is-shallow-repository").strip() == b"true"
    except GitError:
        return False


def _hint(said: list[str], folder: Path) -> str:
    """Return git's first complaint with what may help."""
    text = next((line for line in said if line.startswith("fatal: ")), said[0]).removeprefix("fatal: ")
    hint = next((line.removeprefix("hint: ") for line in said if line.startswith("hint: Did you mean")), "")
    if any(start in text for start in (*_UNKNOWN, *_UNREAD)) or "no merge base" in text:
        hint = _clone_hint(folder).removeprefix("; ")
    return f"{text}; {hint}" if hint else text


def _clone_hint(folder: Path) -> str:
    """Return what may help where a clone lacks history or files."""
    if is_shallow(folder):
        return (
            "; this clone is shallow: `git fetch --unshallow` gets the rest (in GitHub Actions, `fetch-depth: 0` does)"
        )
    if _git(folder, _SWITCHED_OFF, ("config", "--get-regexp", r"^remote\..*\.promisor$"), allowed=(0, 1, 128)):
        return "; this clone is partial, and nothing is fetched: `git diff` of these revisions fetches what is missing"
    return ""
