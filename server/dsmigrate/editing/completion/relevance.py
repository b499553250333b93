"""How much a key matters in this file: what it cannot do without first, what does nothing last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dsmigrate.document import Path
from dsmigrate.editing.completion.members import Candidate
from dsmigrate.editing.completion.situation import Situation
from dsmigrate.knowledge import MISSING
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import MICRO, TOTAL
from dsmigrate.rules.context import UNKNOWN

FIRST = 0
INERT = 8
_STAGE = "zero_optimization.stage"
_NVME = ("zero_optimization.offload_optimizer.nvme_path", "zero_optimization.offload_param.nvme_path")


@dataclass(frozen=True, slots=True)
class Relevance:
    """A rank from FIRST to INERT, and the reason where there is one to tell."""

    rank: int
    reason: str = ""


_PLAIN = tuple(Relevance(rank) for rank in range(INERT + 1))


def of(candidate: Candidate, place: Path, situation: Situation) -> Relevance:
    """Return how much ``candidate`` matters in the object at ``place``."""
    if candidate.is_plain:
        return _PLAIN[candidate.rank]
    unmet = _unmet(candidate.effective_when, place, situation) or _none_of(candidate, place, situation)
    if unmet:
        return Relevance(INERT, unmet)
    if candidate.required_when is not None and not _unmet(candidate.required_when, place, situation):
        return Relevance(FIRST, "required")
    if situation.whole and candidate.path in {MICRO, TOTAL} and not (situation.has(MICRO) or situation.has(TOTAL)):
        return Relevance(FIRST if candidate.path == MICRO else 1, say("one of two is required"))
    if candidate.path in _NVME and situation.fact(f"{candidate.path.rpartition('.')[0]}.device") == "nvme":
        return Relevance(FIRST, "required")
    asked_for = sum(situation.has(_here(path, place)) for path in candidate.effective_when)
    return Relevance(max(1, candidate.rank - asked_for))


def _none_of(candidate: Candidate, place: Path, situation: Situation) -> str:
    """Return why none of the groups of conditions holds of which one must; "" when one may."""
    unmet = [_unmet(conditions, place, situation) for conditions in candidate.effective_when_any]
    return unmet[0] if unmet and all(unmet) else ""


def _unmet(conditions: Mapping[str, Sequence[object]], place: Path, situation: Situation) -> str:
    """Return the first condition that certainly does not hold, in words; "" when all may."""
    for path, wanted in conditions.items():
        here = _here(path, place)
        value = situation.fact(here)
        if (
            value is UNKNOWN
            or (not wanted and situation.has(here))
            or any(value == one and isinstance(value, bool) is isinstance(one, bool) for one in wanted)
        ):
            continue
        if path == _STAGE:
            return say("no effect at ZeRO stage {value}", value=json_text(value))
        shown = (
            "nothing"
            if value is MISSING
            else json_text(value)
            if not isinstance(value, dict | list)
            else say("no value")
        )
        return say(
            "no effect: {what} is {shown}", what=path.rpartition(".")[2] if len(path) > 40 else path, shown=shown
        )
    return ""


def _here(path: str, place: Path) -> str:
    """Return the path of a condition with the free names that ``place`` lies in."""
    if "*" not in path:
        return path
    names = path.split(".")
    for index, name in enumerate(names):
        if name == "*" and index < len(place):
            names[index] = str(place[index])
    return ".".join(names)
