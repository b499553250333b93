"""Parameters that a step does not use, as DDP allows with find_unused_parameters or static_graph."""

from __future__ import annotations

from collections.abc import Iterable

from dsmigrate.verify.causes.evidence import Evidence
from dsmigrate.verify.causes.registry import signature
from dsmigrate.verify.model import Step

BRANCH = "data-dependent-branch"
TITLE = "the processes use different parameters in one step (MG110)"
_LATER = ("gradient norm", "clipped gradient norm", "loss", "weights")
_SHOWN = 3


@signature(
    BRANCH,
    TITLE,
    advice="let every process use all of them, by adding 0.0 × the sum of the unused outputs to the loss; or train at ZeRO 0, "
    "which puts zeros in the place of what is missing, as DDP does",
    explains=_LATER,
    certain=True,
)
def branch(evidence: Evidence) -> str | None:
    if int(evidence.setting("zero_stage", 0)) == 0:
        return None
    for before, _ in evidence.until():
        some = apart(before)
        if some:
            ranks = ", ".join(str(rank) for rank, names in enumerate(before.idle) if names & some)
            return (
                f"at step {before.index + 1} {named(some)} had no gradient on rank {ranks}, and had one elsewhere: ZeRO then "
                "fills its buckets with different layers and averages those with one another"
            )
    return None


@signature(
    "unused-parameters",
    "parameters that no rank uses get weight decay (MG110)",
    advice="leave them out of the optimizer, or use them in both scripts (0.0 × their output added to the loss)",
    explains=_LATER,
    certain=True,
)
def unused(evidence: Evidence) -> str | None:
    used: set[str] = set()
    for before, _ in evidence.until():
        idle = _everywhere(before)
        decays = any(group.get("weight_decay") for group in before.groups)
        remembers = any(group.get("momentum") or "betas" in group for group in before.groups)
        moved = idle if decays else idle & used if remembers else set()
        if moved:
            return (
                f"at step {before.index + 1} no rank uses {named(moved)}: DDP leaves them as they are, the engine's "
                f"optimizer sees a gradient of zero and moves them by {'weight decay' if decays else 'momentum'}"
            )
        used |= set(evidence.original.start.tensors) - idle
    return None


def _everywhere(step: Step) -> set[str]:
    return set(frozenset.intersection(*step.idle)) if step.idle else set()


def apart(step: Step) -> set[str]:
    """Return the parameters that some ranks do not use in a step, and others do."""
    return set(frozenset.union(*step.idle)) - _everywhere(step) if step.idle else set()


def named(names: Iterable[str]) -> str:
    """Return the first names, and how many more there are."""
    found = sorted(names)
    more = len(found) - _SHOWN
    return ", ".join(found[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
