"""Every variant with every tuning, estimated; those that fit in the order of speed, the rest with what they lack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from dsmigrate.editing.view import View
from dsmigrate.knowledge import knowledge
from dsmigrate.memory.activations import Checkpointing
from dsmigrate.memory.estimate import Estimate, estimate
from dsmigrate.memory.model import Place
from dsmigrate.memory.variants import Config, Variant, seen
from dsmigrate.recommend.config import TUNINGS, avoiding, config_for, overlapping
from dsmigrate.recommend.request import Request
from dsmigrate.recommend.speed import Seconds, seconds
from dsmigrate.rules import Finding, Severity
from dsmigrate.rules.known_bugs import KNOWN_BUG, met

_ALIKE = 1.03
"""Times that differ by less are one."""
_PLENTY = 4
"""How often what is needed has to go into the room of a GPU for it to be plenty."""


@dataclass(frozen=True)
class Candidate:
    """A variant with a config, what it takes, and about how long a step is."""

    variant: Variant
    config: Config
    view: View
    estimate: Estimate
    seconds: Seconds
    tuned: int

    @property
    def checkpointing(self) -> Checkpointing:
        """How activations are kept."""
        return self.estimate.work.checkpointing

    @property
    def fits(self) -> bool:
        """Whether it fits; a memory of unknown size is large enough."""
        return not self.estimate.lacks

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What the rules say of the config, but for hints, information, and bugs that no setting avoids."""
        grave = (one for one in self.view.findings if one.severity in {Severity.ERROR, Severity.WARNING})
        return tuple(one for one in grave if one.code != KNOWN_BUG)


@dataclass(frozen=True)
class Recommendation:
    """The candidates, one for each variant: those that fit with the fastest first, then the rest.

    What the rules warn of stands behind the others that fit, if it would be the first.
    """

    request: Request
    fitting: tuple[Candidate, ...]
    failing: tuple[Candidate, ...]
    version: str

    @property
    def chosen(self) -> Candidate | None:
        """The first; None where nothing fits, or the rules warn of all that does."""
        first = self.fitting[0] if self.fitting else None
        return None if first is None or first.findings else first


def recommend(request: Request) -> Recommendation:
    """Return what fits, fastest first, and what does not.

    A variant stands there once: with the tuning and the checkpointing that are the fastest of those that fit, or the
    most frugal where none does.
    """
    known = knowledge(request.version)
    best = [
        found for variant in _possible(request) if (found := _best(request, _candidates(request, variant))) is not None
    ]
    fitting = _sorted([one for one in best if one.fits], alone=request.machine.ranks == 1)
    sound = next((number for number, one in enumerate(fitting) if not one.findings), 0)
    return Recommendation(
        request,
        (*fitting[sound:], *fitting[:sound]),
        tuple(sorted((one for one in best if not one.fits), key=lambda one: one.estimate.peak or 0)),
        known.version,
    )


def _possible(request: Request) -> Iterator[Variant]:
    """Yield the variants, without NVMe where there is no path to it."""
    for variant in request.variants:
        if request.nvme_path is not None or not variant.uses_nvme:
            yield variant


def _candidates(request: Request, variant: Variant) -> Iterator[Candidate]:
    known = knowledge(request.version)
    tunings = TUNINGS if variant.stage else TUNINGS[:1]
    for tuned, tuning in enumerate(tunings):
        config = config_for(request, variant, tuning, known)
        view = _seen(request, config)
        bugs = [bug for bug in met(view.context) if bug.sets or bug.removes]
        if bugs:
            config = avoiding(config, bugs)
            view = _seen(request, config)
        overlaps = overlapping(config)
        bare = estimate(variant.name, view.context, request.described, request.machine, request.work)
        for kept in request.kept:
            if bare is not None:
                found = bare.of(replace(request.work, checkpointing=kept))
                time = seconds(request, found, variant, tuned, overlaps=overlaps)
                yield Candidate(variant, config, view, found, time, tuned)


def _seen(request: Request, config: Config) -> View:
    return seen(
        config,
        request.machine,
        request.described,
        version=request.version,
        consumer=request.consumer,
        hardware=request.hardware,
    )


def _best(request: Request, candidates: Iterator[Candidate]) -> Candidate | None:
    """Return the fastest that fits, else the most frugal; the first of all is faster than those after it."""
    tried: list[Candidate] = []
    for one in candidates:
        if one.fits and not one.tuned and one.checkpointing is request.kept[0]:
            return one
        tried.append(one)
    fitting = [one for one in tried if one.fits]
    if fitting:
        return min(fitting, key=lambda one: (one.seconds.total, one.tuned))
    return min(tried, key=lambda one: (one.estimate.peak or 0, one.estimate.on_node(Place.HOST) or 0), default=None)


def _sorted(candidates: list[Candidate], *, alone: bool) -> list[Candidate]:
    """Return candidates by time, and of those that take as long as each other the better first.

    That is the one without offload, then the one with more room; where there is plenty of room, and on one GPU, which
    nothing is shared with, the lower stage.
    """

    def better(one: Candidate) -> tuple[int, bool, int]:
        offloads = (one.variant.optimizer != "none") + (one.variant.weights != "none")
        peak, room = one.estimate.peak or 0, one.estimate.machine.room
        by_stage = alone or room is None or peak * _PLENTY <= room
        return offloads, not by_stage, one.variant.stage if by_stage else peak

    found: list[Candidate] = []
    left = sorted(candidates, key=lambda one: one.seconds.total)
    while left:
        alike = [one for one in left if one.seconds.total <= left[0].seconds.total * _ALIKE]
        found += sorted(alike, key=better)
        left = left[len(alike) :]
    return found
