"""The rules there are: every module below this package that holds one, found once."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable

from dsmigrate.knowledge import Consumer
from dsmigrate.rules.model import Check, Effect, Example, Rule, Severity

_FOUND: dict[str, Rule] = {}


def rule(
    code: str,
    name: str,
    *,
    summary: str,
    why: str,
    severity: Severity,
    effect: Effect,
    source: tuple[str, ...],
    examples: tuple[Example, ...],
    since: str | None = None,
    until: str | None = None,
    consumers: Iterable[Consumer] = tuple(Consumer),
    keys: tuple[str, ...] = (),
    pains: tuple[int, ...] = (),
    training: bool = False,
) -> Callable[[Check], Check]:
    """Make a function, which takes a Context and yields Findings, the rule ``code``; see ``Rule`` for the arguments.

    Raises ValueError when the code is taken.
    """

    def register(check: Check) -> Check:
        if code in _FOUND:
            raise ValueError(f"{code} is {_FOUND[code].name} already")
        _FOUND[code] = Rule(
            code=code,
            name=name,
            summary=summary,
            why=why,
            severity=severity,
            effect=effect,
            source=source,
            examples=examples,
            check=check,
            since=since,
            until=until,
            consumers=frozenset(consumers),
            keys=keys,
            pains=pains,
            training=training,
        )
        return check

    return register


@functools.cache
def every_rule() -> tuple[Rule, ...]:
    """Return every rule in the order of the codes; the first call imports their modules."""
    package = importlib.import_module("dsmigrate.rules")
    for module in pkgutil.walk_packages(package.__path__, "dsmigrate.rules."):
        if module.name.count(".") > 2 and not module.ispkg:
            importlib.import_module(module.name)
    return tuple(_FOUND[code] for code in sorted(_FOUND))
