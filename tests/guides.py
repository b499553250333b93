"""The fenced blocks of the guides: ``tests/docs`` checks their configs, ``tests/e2e`` runs their commands.

The words behind a block's language say what it is: a file name (``json ds_config.json``, ``text hostfile``) makes it a
file of the reader's folder, codes (``DS102``) are what ``dsmigrate check`` finds in it, ``name=value`` are options of
the check. A line of a ``sh`` block that ends in ``# exits with N`` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "guides"
TRAINING = "no_sync_accum.py"
"""The example that stands for the reader's ``train.py``."""
_FENCE = re.compile(r"^```(\S+)?[ ]*(.*)$")
_EXIT = re.compile(r"\s+# exits with (\d)$")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: where it begins, its language, the words behind it, and its text."""

    line: int
    language: str
    words: tuple[str, ...]
    text: str

    @property
    def file(self) -> str | None:
        """The name of the file that it is; None for commands and figures."""
        return self.words[0] if self.words else None

    @property
    def codes(self) -> list[str]:
        """What a check finds in it, errors and warnings."""
        return sorted(word for word in self.words[1:] if "=" not in word)

    @property
    def options(self) -> list[str]:
        """Options of the check: ``consumer=transformers`` as ``--consumer transformers``."""
        names = {"version": "deepspeed-version"}
        pairs = [word.split("=", 1) for word in self.words[1:] if "=" in word]
        return [part for name, value in pairs for part in (f"--{names.get(name, name)}", value)]

    @property
    def commands(self) -> Iterator[tuple[str, int]]:
        """The lines of a ``sh`` block, each with the status that it ends with."""
        for line in self.text.splitlines():
            status = _EXIT.search(line)
            yield _EXIT.sub("", line), int(status[1]) if status else 0


def guides() -> list[Path]:
    """Return every English guide, without the index."""
    return sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")


def blocks(path: Path) -> list[Block]:
    """Return the blocks of a page in their order."""
    found: list[Block] = []
    opened: tuple[int, str, tuple[str, ...]] | None = None
    lines: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if fence is None:
            lines.append(line)
        elif opened is None:
            opened, lines = (number, fence[1] or "", tuple(fence[2].split())), []
        else:
            found.append(Block(*opened, "".join(f"{text}\n" for text in lines)))
            opened = None
    assert opened is None, f"{path}: a block of line {opened and opened[0]} has no end"
    return found
