"""The facts of the newest release as tests take them: its keys, the values at their edges, and how a test tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsmigrate.knowledge import Key, Knowledge, Status, knowledge


def known() -> Knowledge:
    return knowledge()


def every_key() -> list[Key]:
    """Every key that the newest release has, other names of a key left out."""
    found = [known().key(path) for path in known().every_path()]
    here = {Status.PRESENT, Status.DEPRECATED}
    return [key for key in found if key is not None and key.status in here and key.alias_of is None]


def keys() -> list[Key]:
    """Every key with a fixed place: free names and elements of lists left out."""
    return [key for key in every_key() if "*" not in key.path and "[]" not in key.path]


def boundaries(key: Key) -> Iterator[tuple[object, bool]]:
    """Yield values at the edges of what ``key`` takes, each with whether it is accepted."""
    step = 1 if key.type[:1] == ("integer",) else 0.001
    if key.minimum is not None:
        yield from ((key.minimum, True), (key.minimum - step, False))
    if key.exclusive_minimum is not None:
        yield from ((key.exclusive_minimum, False), (key.exclusive_minimum + step, True))
    if key.maximum is not None:
        yield from ((key.maximum, True), (key.maximum + step, False))
    if key.exclusive_maximum is not None:
        yield from ((key.exclusive_maximum, False), (key.exclusive_maximum - step, True))
    for value in key.enum:
        yield (value, True)
        if key.ignores_case and isinstance(value, str):
            yield (value.swapcase(), True)


def show(what: str, count: int) -> None:
    print(f"{what}: {count}")


def none(wrong: dict[str, Any]) -> None:
    """Fail with a line for each fact that does not hold."""
    assert not wrong, "\n".join(["", *(f"{fact}: {found}" for fact, found in wrong.items())])
