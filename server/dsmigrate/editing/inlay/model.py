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


@dataclass(frozen=True, slots=True)
class Hint:
    """A text to show at an offset; it is no part of the file. ``tooltip`` is Markdown."""

    offset: int
    text: str
    tooltip: str
    kind: Kind
