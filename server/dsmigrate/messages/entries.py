"""The compiled table of messages, typed; it is loaded with the first question."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dsmigrate.knowledge.store import load
from dsmigrate.languages import say
from dsmigrate.rules import Severity

FILE = "messages"
PLACE = "{}"
TITLES = {
    "deepspeed": "DeepSpeed",
    "transformers": "Transformers",
    "accelerate": "Accelerate",
    "torch": "torch",
    "nvidia_nccl_cu12": "NCCL",
    "nvidia_cuda_runtime_cu12": "CUDA",
    "pytorch_lightning": "Lightning",
    "pydantic": "pydantic 1",
    "pydantic_core": "pydantic 2",
    "hjson": "Hjson",
}
"""The packages, in the order in which people are told of them."""
_WARNS = frozenset({"warn", "warning", "warning_once", "warning_rank0"})
_TELLS = frozenset({"info", "info_rank0", "log_dist", "log_dist_once", "print", "print_rank_0"})
_LETTERS = re.compile(r"[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Text:
    """One wording of a message, ``{}`` standing for what is filled in.

    ``kind`` is the exception that is raised with it or the function that prints it; ``spans`` are the first and the
    last release of each stretch of releases that have it.
    """

    text: str
    file: str
    kind: str
    spans: tuple[tuple[str, str], ...]

    @property
    def pieces(self) -> tuple[str, ...]:
        """What stands between the places."""
        return tuple(piece.strip() for piece in self.text.split(PLACE) if piece.strip())

    @property
    def letters(self) -> int:
        """How many letters are its own: the more, the more is said by its being there."""
        return sum(len(_LETTERS.findall(piece)) for piece in self.pieces)

    @property
    def severity(self) -> Severity:
        """How bad it is to meet it."""
        if self.kind in _WARNS:
            return Severity.WARNING
        return Severity.INFO if self.kind in _TELLS else Severity.ERROR

    @property
    def shown(self) -> str:
        """The text for people."""
        return self.text.replace(PLACE, "…")


@dataclass(frozen=True, slots=True)
class Entry:
    """What a message means, whatever its wording; ``name`` is its name in ``messages.toml``."""

    name: str
    package: str
    english_cause: str
    english_cure: str
    keys: tuple[str, ...]
    codes: tuple[str, ...]
    texts: tuple[Text, ...]

    @property
    def cause(self) -> str:
        """Why it is given, in the spoken language."""
        return say(self.english_cause)

    @property
    def cure(self) -> str:
        """What to do, in the spoken language."""
        return say(self.english_cure)

    @property
    def title(self) -> str:
        """The package as people know it."""
        return TITLES[self.package]

    @property
    def page(self) -> str:
        """Where in ``docs/messages`` it is described."""
        return f"{self.package}.md#{self.name}"


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Return every entry; raises FileNotFoundError when the installation lacks the table."""
    return tuple(
        Entry(
            name=name,
            package=found["package"],
            english_cause=found["cause"],
            english_cure=found["cure"],
            keys=tuple(found.get("keys", ())),
            codes=tuple(found.get("codes", ())),
            texts=tuple(
                Text(text, file, kind, tuple((first, last) for first, last in spans))
                for text, (file, kind, spans) in found["texts"].items()
            ),
        )
        for name, found in load(FILE)["entries"].items()
    )


def releases(package: str) -> tuple[str, str]:
    """Return the first and the last release of a package that was read."""
    first, last = load(FILE)["releases"][package]
    return first, last


def since_and_last(package: str, texts: Sequence[Text]) -> tuple[str | None, str | None]:
    """Return the first release that has one of the texts and the last one.

    None for the first where the oldest release that was read has it, and for the last where the newest has it; for both
    where Python gives the text.
    """
    if not any(text.spans for text in texts):
        return None, None
    known = load(FILE)["releases"][package]
    starts = [text.spans[0][0] for text in texts]
    ends = [text.spans[-1][1] for text in texts]
    return (
        None if known[0] in starts else min(starts, key=_order),
        None if known[1] in ends else max(ends, key=_order),
    )


def _order(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))
