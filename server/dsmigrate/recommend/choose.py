"""Every variant with every tuning, estimated; those that fit in the order of speed, the rest with what they lack."""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from dsmigrate.editing.view import View
from dsmigrate.knowledge import Consumer, Status, knowledge
from dsmigrate.knowledge.versions import order
from dsmigrate.memory.activations import Attention, Checkpointing, Loss
from dsmigrate.memory.estimate import Estimate, estimate
from dsmigrate.memory.model import Place
from dsmigrate.memory.sources.errors import ModelError
from dsmigrate.memory.trained import Adapter, with_adapter
from dsmigrate.memory.variants import Config, Variant, seen
from dsmigrate.recommend.config import TUNINGS, Tuning, avoiding, config_for, overlapping
from dsmigrate.recommend.request import Request
from dsmigrate.recommend.speed import Seconds, seconds
from dsmigrate.rules import Finding, Severity
from dsmigrate.rules.batch._shared import SEQUENCE
from dsmigrate.rules.known_bugs import KNOWN_BUG, met
from dsmigrate.rules.precision._shared import BF16_STATES

ALIKE = 1.03
"""Times that differ by less are one."""
_LONG = 16384
"""Tokens of a sample from which it is worth to split one over GPUs."""
_ULYSSES_SINCE = "0.18.2"
"""The first release that Accelerate splits sequences with (accelerate/accelerator.py:_prepare_deepspeed)."""
_LOW_ON_HOST_SINCE = "0.19.1"
"""The first release that keeps states in bf16 on the host (deepspeed/runtime/engine.py:get_optimizer_configuration)."""
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
    """The candidates, one for each variant: those that fit, then the rest.

    Of those that fit the fastest stands first that changes neither numbers nor the script; behind these, fastest first
    as well, follow those that ask for changes of the script, those that change numbers, and what the rules warn of.
    What asks or changes is there only if it is faster than all that do not.
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
    plain = _fastest(request, _possible(request))
    fitting, failing = _apart(request, plain)
    first = fitting[0] if fitting and not fitting[0].findings else None
    if not request.plain:
        more, lacking = _apart(request, _fastest(request, _unusual(request)))
        if first is not None:
            more = [one for one in more if one.seconds.total * ALIKE < first.seconds.total]
        fitting = _ranked([*fitting, *more])
        failing += [] if fitting else lacking
    return Recommendation(
        request,
        tuple(fitting),
        tuple(sorted(failing, key=lambda one: one.estimate.peak or 0)),
        known.version,
    )


def _fastest(request: Request, variants: Iterator[Variant]) -> list[Candidate]:
    """Return the best candidate of each variant, of those that share samples over different numbers of GPUs of all."""
    found: dict[Variant, Candidate] = {}
    for variant in variants:
        one = _best(request, _candidates(request, variant))
        if one is not None:
            key = replace(variant, sequence=min(variant.sequence, 2))
            before = found.get(key)
            found[key] = one if before is None else min(before, one, key=_worth)
    return list(found.values())


def _apart(request: Request, best: list[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """Return those that fit, in their order, and the others."""
    fitting = [one for one in best if one.fits]
    fitting = _ranked(_sorted(fitting, alone=request.machine.ranks == 1, slow=request.link != "nvlink"))
    return fitting, [one for one in best if not one.fits]


def _ranked(fitting: list[Candidate]) -> list[Candidate]:
    """Return candidates by what they change, those of a kind in the order that they have."""
    return sorted(fitting, key=lambda one: (bool(one.findings), not one.variant.is_exact, not one.variant.is_plain))


def _worth(one: Candidate) -> tuple[bool, float]:
    return not one.fits, one.seconds.total if one.fits else one.estimate.peak or 0


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
    """Yield what keeps model, samples and machines: another loss."""
    shape = request.described.shape
    if shape is not None and shape.vocabulary and request.work.computed(shape) is not Loss.FUSED:
        yield (
            "--loss fused (Liger, TiledFusedLogitsLoss)",
            replace(request, work=replace(request.work, loss=Loss.FUSED)),
        )


def _relaxations(request: Request) -> Iterator[tuple[str, Request]]:
    machine, model = request.machine, request.described
    shape = model.shape
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
    if _gathers_inside(request):
        yield Variant(3, group=request.machine.gpus)


def _unusual(request: Request) -> Iterator[Variant]:
    """Yield the variants that change numbers, or take changes of the script."""
    if _gathers_inside(request):
        yield Variant(3, group=request.machine.gpus, quantised=True)
    usual = [one for one in _possible(request) if one.stage and not one.uses_nvme and not one.group]
    if request.half == "bf16" and _has(request, BF16_STATES) and not request.described.model.frozen:
        # Accelerate's DeepSpeedCPUAdam keeps its states in fp32, which bf16_optimizer_states refuses
        offloads = _is_since(request, _LOW_ON_HOST_SINCE) and request.consumer is not Consumer.ACCELERATE
        yield from (replace(one, low=True) for one in usual if offloads or one.optimizer == "none")
    for ranks in degrees(request):
        for variant in usual:
            yield replace(variant, sequence=ranks)


def degrees(request: Request) -> Iterator[int]:
    """Yield over how many GPUs of a node Ulysses can split a sample, where samples are long enough for it to pay.

    It divides the attention heads (deepspeed/runtime/sequence_parallel/ulysses_sp.py:UlyssesSPAttentionHF), and takes
    no attention that keeps scores (register_with_transformers).
    """
    shape, work, gpus = request.described.shape, request.work, request.machine.gpus
    if shape is None or shape.tokens is not None or shape.cross or work.sequence < _LONG:
        return
    if work.attention is Attention.EAGER or not _is_since(request, _ULYSSES_SINCE):
        return
    keys = shape.key_value_heads
    for ranks in range(2, gpus + 1):
        if gpus % ranks == shape.heads % ranks == work.sequence % ranks == 0 and (
            keys % ranks == 0 or ranks % keys == 0
        ):
            yield ranks


def _gathers_inside(request: Request) -> bool:
    inside = request.machine.nodes > 1 and request.machine.gpus > 1 and Variant(3) in request.variants
    return inside and _has(request, "zero_optimization.zero_hpz_partition_size")


def _is_since(request: Request, release: str) -> bool:
    return order(knowledge(request.version).version) >= order(release)


def _has(request: Request, path: str) -> bool:
    """Return whether the release has a key."""
    key = knowledge(request.version).key(path)
    return key is not None and key.status is Status.PRESENT


def _candidates(request: Request, variant: Variant) -> Iterator[Candidate]:
    request = request.sharing(variant.sequence)
    if not request.divides:
        return
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
    # Accelerate makes the groups without the key, by which sizes are reckoned
    measured = view if request.work.shared == 1 else _seen(request, config | {SEQUENCE: request.work.shared})
    found = estimate(variant.name, measured.context, request.described, request.machine, request.work)
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
