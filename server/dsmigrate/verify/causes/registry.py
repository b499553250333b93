"""The table of signatures: each module of this package adds its own by decorator."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dsmigrate.verify.causes.evidence import Evidence
from dsmigrate.verify.model import Cause, Difference, Run

_MODULES = ("data", "setup", "loss", "gradient", "clipping", "schedule", "optimizer", "update")
_SHOWN = 3

Check = Callable[[Evidence], str | None]


@dataclass(frozen=True, slots=True)
class Signature:
    """One known way to part.

    ``explains`` names the quantities that may part first because of it. ``certain`` says that the records show the
    cause itself and not only what it leads to. ``fallback`` is for those that say little: they are named where nothing
    else fits. ``check`` returns the evidence in words, None where there is none.
    """

    id: str
    title: str
    advice: str
    explains: frozenset[str]
    certain: bool
    fallback: bool
    check: Check


_SIGNATURES: list[Signature] = []


def signature(
    name: str,
    title: str,
    *,
    advice: str,
    explains: Sequence[str],
    certain: bool = False,
    fallback: bool = False,
) -> Callable[[Check], Check]:
    """Add a function to the table. Within the table the first that fits is named first, certain ones before others."""

    def add(check: Check) -> Check:
        _SIGNATURES.append(Signature(name, title, advice, frozenset(explains), certain, fallback, check))
        return check

    return add


@functools.cache
def signatures() -> tuple[Signature, ...]:
    """Return the table, in the order in which causes are looked for."""
    for module in _MODULES:
        importlib.import_module(f"dsmigrate.verify.causes.{module}")
    return tuple(sorted(_SIGNATURES, key=lambda one: (one.fallback, not one.certain)))


def explain(original: Run, converted: Run, differences: tuple[Difference, ...]) -> tuple[Cause, ...]:
    """Return the likely causes of the first difference, the likeliest first; empty where no signature fits."""
    if not original.steps or not converted.steps or not differences:
        return ()
    evidence = Evidence(original, converted, differences)
    found: list[Cause] = []
    for one in signatures():
        if evidence.first.quantity in one.explains and not (one.fallback and found):
            why = one.check(evidence)
            if why is not None:
                found.append(Cause(one.id, one.title, why, one.advice, one.certain))
    return tuple(found[:_SHOWN])
