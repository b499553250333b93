"""Order of DeepSpeed releases, as cheap as a comparison of tuples."""

from __future__ import annotations

import functools
import re

Version = tuple[int, ...]
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


@functools.lru_cache(maxsize=512)
def order(version: str) -> Version:
    """Return what a release sorts by; a suffix such as ``+cu121`` or ``rc1`` counts for nothing.

    Raises ValueError for a text that does not start with a number.
    """
    found = _NUMBERS.match(version.strip().removeprefix("v"))
    if found is None:
        raise ValueError(f"{version!r} is not a version")
    numbers = tuple(int(number) for number in found[0].split("."))
    return numbers + (0,) * (3 - len(numbers))
