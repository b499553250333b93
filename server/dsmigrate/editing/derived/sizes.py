"""Large numbers as a reader takes them in: 500000000 elements are "500 M", 1e9 bytes "0.93 GiB"."""

from __future__ import annotations

LARGEST = 10**18
"""Above it a number is a way to say "no limit", and nothing is computed from it."""

_COUNTS = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))
_BYTES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def whole(value: object) -> int | None:
    """Return a number of things: a whole number from 0 to ``LARGEST``; None for anything else. True is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= LARGEST:
        return None
    return int(value) if value == int(value) else None


def count_text(count: int) -> str:
    """Return a count in short: "500 M", "1.2 G", "4096"."""
    if count < 10_000:
        return str(count)
    for unit, name in _COUNTS:
        if count >= unit:
            return f"{_digits(count / unit)} {name}"
    return str(count)


def parameters_text(count: int) -> str:
    """Return a number of parameters as the field writes it: "7B", "41.9M"."""
    return count_text(count).replace(" ", "").replace("G", "B")


def bytes_text(count: float) -> str:
    """Return a number of bytes in short: "0.93 GiB", "95.4 MiB", "512 B"; the unit changes at nine tenths of it."""
    for unit, name in _BYTES:
        if count >= 0.9 * unit:
            return f"{_digits(count / unit)} {name}"
    return f"{int(count)} B"


def _digits(value: float) -> str:
    """Return a number with three digits, those behind the point only where they say something."""
    places = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
