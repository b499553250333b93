"""What an inlay hint is."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.Enum):
    """What a hint tells; settings may leave kinds out."""

    DERIVED = "derived"
    """A number that DeepSpeed computes from others of the file."""
    SIZE = "size"
    """A large number in short, with the bytes behind it."""
    DEFAULT = "default"
    """The default of a decisive key that is left out."""
    INERT = "inert"
    """That a key does nothing at this stage, or for this device."""
    AUTO = "auto"
    """What "auto" becomes."""


MOST = 43
"""Characters of a hint: of more, VS Code shows the first ones (``editor.inlayHints.maximumLength``)."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A text to show at an offset; it is no part of the file. ``tooltip`` is Markdown."""

    offset: int
    text: str
    tooltip: str
    kind: Kind


def named(name: str, rest: str = "") -> str:
    """Return a name with what is said of it, which stays whole: a long name is cut."""
    room = MOST - len(rest)
    return f"{name}{rest}" if len(name) <= room else f"{name[: room - 1]}…{rest}"


def behind(text: str, offset: int) -> int:
    """Return the offset behind the comma that follows a value, else that of the value's end."""
    after = offset
    while after < len(text) and text[after] in " \t":
        after += 1
    return after + 1 if text[after : after + 1] == "," else offset
