"""The table of signatures: each module of this package adds its own by decorator."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dsmigrate.verify.causes.evidence import Evidence
from dsmigrate.verify.model import Cause, Difference, Run

_MODULES = ("data", "setup", "loss", "branches", "gradient", "clipping", "schedule", "optimizer", "update")
_SHOWN = 6
_ALONE = frozenset({"samples", "backwards", "inputs", "learning rate", "weight decay"})
"""What does not come from the losses and gradients before: a difference has a cause of its own."""

Check = Callable[[Evidence], str | None]


@dataclass(frozen=True, slots=True)
class Signature:
    """One known way to part.

    ``explains`` names the quantities that may part first because of it. ``certain`` says that the records show the
    cause itself and not only what it leads to. ``fallback`` is for those that say little: they are named where nothing
    else fits. It is not named beside those that it ``follows`` from; ``early`` is for what later on may be an effect of
    anything: only the first difference counts. ``check`` returns the evidence in words, None where there is none.
    """

    id: str
    title: str
    advice: str
    explains: frozenset[str]
    certain: bool
    fallback: bool
    check: Check
    follows: frozenset[str] = frozenset()
    early: bool = False


_SIGNATURES: list[Signature] = []


def signature(
    name: str,
    title: str,
    *,
    advice: str,
    explains: Sequence[str],
    certain: bool = False,
    fallback: bool = False,
    follows: Sequence[str] = (),
    early: bool = False,
) -> Callable[[Check], Check]:
    """Add a function to the table. Within the table the first that fits is named first, certain ones before others."""

    def add(check: Check) -> Check:
        found = Signature(name, title, advice, frozenset(explains), certain, fallback, check, frozenset(follows), early)
        _SIGNATURES.append(found)
        return check

    return add


@functools.cache
def signatures() -> tuple[Signature, ...]:
    """Return the table, in the order in which causes are looked for."""
    for module in _MODULES:
        importlib.import_module(f"dsmigrate.verify.causes.{module}")
    return tuple(sorted(_SIGNATURES, key=lambda one: (one.fallback, not one.certain)))


def explain(original: Run, converted: Run, differences: tuple[Difference, ...]) -> tuple[Cause, ...]:
    """Return the likely causes of the differences: those of the first one first, and what was observed before others.

    Later differences may come from the first: of their causes only those are named that the records show by themselves,
    and those of what does not depend on the training before. Empty where no signature fits.
    """
    if not original.steps or not converted.steps or not differences:
        return ()
    found: dict[str, tuple[Signature, Cause]] = {}
    for position in range(len(differences)):
        evidence = Evidence(original, converted, differences, position)
        for one in signatures():
            if _may_explain(one, evidence, [signature for signature, _ in found.values()]):
                _look(one, evidence, found)
    whole = Evidence(original, converted, differences, whole=True)
    parted = {one.quantity for one in differences}
    for one in signatures():
        if one.certain and not one.fallback and not one.early and parted & one.explains:
            _look(one, whole, found)
    return tuple(cause for _, cause in found.values())[:_SHOWN]


def _look(one: Signature, evidence: Evidence, found: dict[str, tuple[Signature, Cause]]) -> None:
    if one.id in found or one.follows & set(found):
        return
    why = one.check(evidence)
    if why is not None:
        parted = [other.quantity for other in evidence.differences if other.quantity in one.explains]
        quantity = parted[0] if evidence.whole else evidence.difference.quantity
        found[one.id] = one, Cause(one.id, one.title, why, one.advice, one.certain, quantity)


def _may_explain(one: Signature, evidence: Evidence, found: Sequence[Signature]) -> bool:
    difference, first = evidence.difference, evidence.differences[0]
    if difference.quantity not in one.explains or (one.early and evidence.position):
        return False
    if one.fallback:
        if any(difference.quantity in other.explains for other in found):
            return False
        return not found or (difference.quantity in _ALONE and _is_as_early(difference, evidence.differences))
    return one.certain or difference.quantity in _ALONE or difference.step == first.step


def _is_as_early(difference: Difference, all_: Sequence[Difference]) -> bool:
    """Return whether nothing that depends on the training has parted before: some schedules follow the loss."""
    steps = [one.step for one in all_ if one.quantity not in _ALONE and one.step is not None]
    return difference.step is not None and difference.step <= min(steps, default=difference.step)
