"""Parameters that the class behind an optimizer type does not take in this file."""

from __future__ import annotations

from dsmigrate.editing.completion.members import Candidate
from dsmigrate.editing.completion.situation import Situation
from dsmigrate.knowledge import Parameter
from dsmigrate.rules.optimizer._shared import refusal


def is_foreign(candidate: Candidate, situation: Situation) -> bool:
    """Return whether the optimizer of the file would refuse, or drop, what a candidate stands for."""
    return isinstance(candidate.facts, Parameter) and is_foreign_name(candidate.data[1], candidate.name, situation)


def is_foreign_name(kind: str, name: str, situation: Situation) -> bool:
    """Return whether the optimizer of the file would refuse, or drop, a parameter; schedulers have one class each."""
    owner = situation.facts_of("optimizer") if kind == "optimizer" else None
    facts = None if owner is None else owner.parameters.get(name)
    if owner is None or facts is None or not facts.only_with:
        return False
    return refusal(situation, owner, facts, value=True) is not None
