"""Numbers for people."""

from __future__ import annotations

_DIGITS = range(6, 18)


def shown(number: float | None) -> str:
    """Return a number for people."""
    return "none" if number is None else f"{number:.6g}"


def told_apart(one: float | None, other: float | None, digits: int = 6) -> tuple[str, str]:
    """Return two numbers with as many digits as it takes to see which is which, ``digits`` at least."""
    if one is None or other is None:
        return shown(one), shown(other)
    if one == other:
        return f"{one:.{digits}g}", f"{other:.{digits}g}"
    pairs = ((f"{one:.{count}g}", f"{other:.{count}g}") for count in (digits, *_DIGITS))
    return next((pair for pair in pairs if pair[0] != pair[1]), (repr(one), repr(other)))


def counted(steps: int) -> str:
    """Return a number of optimizer steps in words."""
    return "1 optimizer step" if steps == 1 else f"{steps} optimizer steps"
