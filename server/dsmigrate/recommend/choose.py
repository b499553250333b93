"""Every variant with every tuning, estimated; those that fit in the order of speed, the rest with what they lack."""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from dsmigrate.editing.view import View
from dsmigrate.knowledge import Status, knowledge
from dsmigrate.memory.activations import Checkpointing, Loss
from dsmigrate.memory.estimate import Estimate, estimate
from dsmigrate.memory.model import Place
from dsmigrate.memory.sources.errors import ModelError
from dsmigrate.memory.trained import Adapter, with_adapter
from dsmigrate.memory.variants import Config, Variant, seen
from dsmigrate.recommend.config import TUNINGS, Tuning, avoiding, config_for, overlapping
from dsmigrate.recommend.request import Request
from dsmigrate.recommend.speed import Seconds, seconds
from dsmigrate.rules import Finding, Severity
from dsmigrate.rules.known_bugs import KNOWN_BUG, met

ALIKE = 1.03
"""Times that differ by less are one."""
_LONG = 16384
"""Tokens of a sample from which it is worth to split one over GPUs."""
_TIGHT = 0.95
"""The share of the room of a GPU that a larger micro-batch may fill: the allocator reserves more than is allocated."""
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
    fitting = _sorted(
        [one for one in best if one.fits], alone=request.machine.ranks == 1, slow=request.link != "nvlink"
    )
    exact = (number for number, one in enumerate(fitting) if not one.findings and not one.variant.quantised)
    sound = next(exact, next((number for number, one in enumerate(fitting) if not one.findings), 0))
    return Recommendation(
        request,
        (*fitting[sound:], *fitting[:sound]),
        tuple(sorted((one for one in best if not one.fits), key=lambda one: one.estimate.peak or 0)),
        known.version,
    )


def relaxed(found: Recommendation, *, cheap: bool = False) -> Iterator[tuple[str, Candidate]]:
    """Yield what would do with a little less, or a little more: in words, and what is chosen then.

    ``cheap``: only what asks for neither other machines nor another training.
    """
    request = found.request
    for said, asked in (*_kept(request), *(() if cheap else _relaxations(request))):
        answer = recommend(asked)
        if answer.chosen is not None:
            yield said, answer.chosen


def _kept(request: Request) -> Iterator[tuple[str, Request]]:
    """Yield what keeps model, samples and machines: another loss, and other formats."""
    shape, known = request.described.shape, knowledge(request.version)
    if shape is not None and shape.vocabulary and request.work.computed(shape) is not Loss.FUSED:
        yield (
            "--loss fused (Liger, TiledFusedLogitsLoss)",
            replace(request, work=replace(request.work, loss=Loss.FUSED)),
        )
    if request.half == "bf16" and not request.low and known.key("bf16.bf16_optimizer_states") is not None:
        said = "master weights and states in bf16 (bf16.bf16_master_weights_and_grads), which changes numbers"
        yield said, replace(request, low=True)


def _relaxations(request: Request) -> Iterator[tuple[str, Request]]:
    work, machine, model = request.work, request.machine, request.described
    shape = model.shape
    if shape is not None and shape.tokens is None and work.sequence >= _LONG and machine.gpus > 1:
        split = replace(work, sequence=-(-work.sequence // machine.gpus))
        said = f"a sequence split over {machine.gpus} GPUs (Ulysses, sequence_parallel_size {machine.gpus})"
        yield said, replace(request, work=split)
    if shape is not None and not model.model.frozen and not model.block:
        with contextlib.suppress(ModelError):
            adapted = with_adapter(model, Adapter(16, ("all-linear",)))
            yield "LoRA of rank 16 (--trainable adapter_config.json)", replace(request, described=adapted)
    yield f"--nodes {2 * machine.nodes}", replace(request, machine=replace(machine, nodes=2 * machine.nodes))


def _possible(request: Request) -> Iterator[Variant]:
    """Yield the variants, without NVMe where there is no path to it; across nodes those that gather inside as well."""
    for variant in request.variants:
        if request.nvme_path is not None or not variant.uses_nvme:
            yield variant
    gpus = request.machine.gpus
    inside = request.machine.nodes > 1 and gpus > 1 and Variant(3) in request.variants
    if inside and _has(request, "zero_hpz_partition_size"):
        yield from (Variant(3, group=gpus), Variant(3, group=gpus, quantised=True))


def _has(request: Request, name: str) -> bool:
    """Return whether the release has a key of ``zero_optimization``."""
    key = knowledge(request.version).key(f"zero_optimization.{name}")
    return key is not None and key.status is Status.PRESENT


def _candidates(request: Request, variant: Variant) -> Iterator[Candidate]:
    tunings = TUNINGS if variant.stage else TUNINGS[:1]
    for tuned, tuning in enumerate(tunings):
        most = request.work.micro_batch if request.per_gpu is None else 1
        probe = _built(request.sized(most), variant, tuning)
        for kept in request.kept:
            if probe is None:
                continue
            sized, (config, view, bare) = request.sized(most), probe
            if request.per_gpu is not None:
                largest = _largest(bare.of(replace(request.work, checkpointing=kept)), request.per_gpu)
                if largest != most:
                    sized = request.sized(largest)
                    config, view, bare = _built(sized, variant, tuning) or probe
            found = bare.of(replace(sized.work, checkpointing=kept))
            time = seconds(sized, found, variant, tuned, overlaps=overlapping(config))
            yield Candidate(variant, config, view, found, time, tuned)


def _built(request: Request, variant: Variant, tuning: Tuning) -> tuple[Config, View, Estimate] | None:
    """Return the config of a variant, how rules see it, and what it takes; None where its stage is not known."""
    config = config_for(request, variant, tuning, knowledge(request.version))
    view = _seen(request, config)
    bugs = [bug for bug in met(view.context) if bug.sets or bug.removes]
    if bugs:
        config = avoiding(config, bugs)
        view = _seen(request, config)
    found = estimate(variant.name, view.context, request.described, request.machine, request.work)
    if found is None:
        return None
    sent = replace(
        found.traffic, steps=found.traffic.steps or request.steps
    )  # the consumer's "auto" is what is asked for
    return config, view, replace(found, traffic=sent)


def _largest(one: Estimate, samples: int) -> int:
    """Return the largest micro-batch that divides the samples of a GPU and fits, with some room left; 1 at least."""
    sizes = [size for size in range(1, samples + 1) if not samples % size]
    room = one.machine.room

    def too_large(size: int) -> bool:
        found = one.of(replace(one.work, micro_batch=size))
        return bool(found.lacks) or (room is not None and (found.peak or 0) > _TIGHT * room)

    return sizes[max(0, bisect.bisect_left(sizes, 1, key=too_large) - 1)]


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
    """Return the fastest that fits, of the widest tuning with which one does, else the most frugal."""
    tried: list[Candidate] = []
    for one in candidates:
        first = one.checkpointing is request.kept[0]
        if first and any(before.fits for before in tried):
            break
        if one.fits and first and not one.tuned and request.per_gpu is None:
            return one  # of one micro-batch nothing is faster
        tried.append(one)
    fitting = [one for one in tried if one.fits]
    if fitting:
        return min(fitting, key=lambda one: (one.seconds.total, one.tuned))
    return min(tried, key=lambda one: (one.estimate.peak or 0, one.estimate.on_node(Place.HOST) or 0), default=None)


def _sorted(candidates: list[Candidate], *, alone: bool, slow: bool) -> list[Candidate]:
    """Return candidates by time, and of those that take as long as each other the better first.

    That is the one without offload, then the one with more room; where there is plenty of room, on one GPU, which
    nothing is shared with, and on slow links, where every further message counts, the lower stage.
    """

    def better(one: Candidate) -> tuple[int, bool, int, int]:
        offloads = (one.variant.optimizer != "none") + (one.variant.weights != "none")
        peak, room = one.estimate.peak or 0, one.estimate.machine.room
        by_stage = alone or slow or room is None or peak * _PLENTY <= room
        return offloads, not by_stage, one.variant.stage if by_stage else peak, one.variant.group

    found: list[Candidate] = []
    left = sorted(candidates, key=lambda one: one.seconds.total)
    while left:
        alike = [one for one in left if one.seconds.total <= left[0].seconds.total * ALIKE]
        found += sorted(alike, key=better)
        left = left[len(alike) :]
    return found
