"""Large numbers in short, where no other line says them."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.derived import count_text
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.editing.hover.here.subject import Subject
from dsmigrate.languages import say

_LARGE = 1_000_000


def lines(at: Subject) -> Iterator[str]:
    """Yield a number of a million and more with its unit: "15.1 M elements"."""
    key = at.key
    if key is None or not key.unit or key.unit == "bytes" or key.memory or at.scalar is None:
        return
    count = whole(at.scalar.value())
    if count is not None and count >= _LARGE:
        yield say("{count} {unit}.", count=count_text(count), unit=say(key.unit))
