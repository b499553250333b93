"""The DeepSpeed release that each end of a range of commits pins, where the range moves a pin."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from dsmigrate.checking.evidence import UPWARD, Guess, pin_in, pin_rank, release_for, unpinned
from dsmigrate.diff.git import blobs, git
from dsmigrate.diff.job import Versions


@dataclass(frozen=True)
class Ends:
    """Both ends of a range: ids of commits; ``new`` is "" where the range ends in the working tree.

    ``folder`` is where git runs, ``top`` the root of the working tree, None in a bare repository. ``touched`` are the
    paths of the files that differ.
    """

    folder: Path
    top: Path | None
    old: str
    new: str
    touched: frozenset[str]

    def versions(self, directories: Iterable[str]) -> dict[str, Versions]:
        """Return both releases by folder, relative to the top, ``""`` being the top itself."""
        wanted = sorted(set(directories))
        around = {above for directory in wanted for above in _upward(directory)}
        pins = [_pins(self.folder, end, around) if end else None for end in (self.old, self.new)]
        return {directory: self._versions(directory, pins) for directory in wanted}

    def _versions(self, directory: str, pins: list[dict[str, Guess] | None]) -> Versions:
        old, new = (self._release(directory, found) for found in pins)
        return Versions(old.value, new.value, _why(old, new))

    def _release(self, directory: str, pins: Mapping[str, Guess] | None) -> Guess:
        if pins is None:
            return release_for((self.top or self.folder) / directory)
        return next((pins[above] for above in _upward(directory) if above in pins), None) or self._unpinned

    @cached_property
    def _unpinned(self) -> Guess:
        return unpinned()


def moved(folder: Path, top: Path | None, revisions: str) -> Ends | None:
    """Return the ends of a range that changes a file in which releases are pinned; None for any other range.

    Raises GitError for a range that git does not know.
    """
    listed = git(folder, "diff", "--name-only", "-z", "--no-relative", "--no-renames", revisions, "--")
    touched = frozenset(filter(None, os.fsdecode(listed).split("\0")))
    if not any(_is_pinning(PurePosixPath(name)) for name in touched):
        return None
    old, dots, new = revisions.partition("...")
    if dots:
        base = git(folder, "merge-base", old or "HEAD", new or "HEAD").split()[0].decode()
        return Ends(folder, top, base, new or "HEAD", touched)
    old, dots, new = revisions.partition("..")
    return Ends(folder, top, old or "HEAD", (new or "HEAD") if dots else "", touched)


def _is_pinning(path: PurePosixPath) -> bool:
    return pin_rank(path.name) is not None or pin_rank("/".join(path.parts[-2:])) is not None


def _upward(directory: str) -> list[str]:
    """Return a folder and those around it, nearest first, as far as pins are looked for."""
    path = PurePosixPath(directory)
    return ["" if str(above) == "." else str(above) for above in (path, *path.parents)][:UPWARD]


def _pins(folder: Path, revision: str, directories: Iterable[str]) -> dict[str, Guess]:
    """Return what each folder pins in a revision, of those that pin something."""
    inside = sorted({place for directory in directories for place in (directory, _join(directory, "requirements"))})
    asked = [f"{directory}/" if directory else "." for directory in inside]
    listed = git(folder, "ls-tree", "-z", "--full-tree", f"{revision}^{{tree}}", "--", *(asked or ["."]))
    files: dict[str, str] = {}
    for line in filter(None, os.fsdecode(listed).split("\0")):
        kind, _, path = line.partition("\t")
        if kind.startswith("100") and _is_pinning(PurePosixPath(path)):
            files[path] = kind.split(" ")[2]
    texts = dict(zip(files, blobs(folder, files.values()), strict=True))
    found: dict[str, tuple[int, Guess]] = {}
    for path, data in texts.items():
        for directory, name in _named(PurePosixPath(path)):
            rank, release = pin_rank(name), pin_in(name, data.decode("utf-8", "replace"))
            if rank is not None and release and (directory not in found or rank < found[directory][0]):
                found[directory] = rank, Guess(release, f"pinned in {path}")
    return {directory: guess for directory, (_, guess) in found.items()}


def _named(path: PurePosixPath) -> list[tuple[str, str]]:
    """Return the folders that a file may belong to, with its name in each."""
    parts = path.parts
    return [("/".join(parts[:-count]), "/".join(parts[-count:])) for count in (1, 2) if len(parts) >= count]


def _join(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name


def _why(old: Guess, new: Guess) -> str:
    """Return where both releases come from: "pinned in requirements.txt", or each of them by itself."""
    if old.why == new.why:
        return new.why
    return f"{old.value} {old.why}, {new.value} {new.why}"
