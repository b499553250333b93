"""The explanations there are: every module below ``explanations`` that holds one."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.knowledge import Consumer

Explain = Callable[[Pair], Iterable[Explained]]


@dataclass(frozen=True, slots=True)
class Example:
    """Two configs, and the message that the explanation gives for them; "" when it has nothing to say.

    ``says`` may be the beginning of the message; ``paths`` are what it must cover, ``effects`` and ``severity`` what it
    must find.
    """

    old: str
    new: str
    says: str
    paths: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    severity: Severity | None = None
    consumer: Consumer = Consumer.DEEPSPEED
    old_version: str | None = None
    new_version: str | None = None
    world_size: int | None = None
    parameters: int | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """An explanation: its texts, its examples, which are its tests and its page, and the function."""

    code: str
    name: str
    summary: str
    why: str
    source: tuple[str, ...]
    examples: tuple[Example, ...]
    explain: Explain
    last: bool = False
    """Whether it wants to know what the others have said, and is asked after them."""


_FOUND: dict[str, Explanation] = {}


def explanation(
    code: str,
    name: str,
    *,
    summary: str,
    why: str,
    source: tuple[str, ...],
    examples: tuple[Example, ...],
    last: bool = False,
) -> Callable[[Explain], Explain]:
    """Make a function, which takes a Pair and yields what it says, the explanation ``code``.

    One that is ``last`` is asked after the others. Raises ValueError when the code is taken.
    """

    def register(explain: Explain) -> Explain:
        if code in _FOUND:
            raise ValueError(f"{code} is {_FOUND[code].name} already")
        _FOUND[code] = Explanation(code, name, summary, why, source, examples, explain, last)
        return explain

    return register


@functools.cache
def every_explanation() -> tuple[Explanation, ...]:
    """Return every explanation in the order of the codes; the first call imports their modules."""
    package = importlib.import_module("dsmigrate.diff.explanations")
    for module in pkgutil.walk_packages(package.__path__, "dsmigrate.diff.explanations."):
        if not module.ispkg:
            importlib.import_module(module.name)
    return tuple(_FOUND[code] for code in sorted(_FOUND))
