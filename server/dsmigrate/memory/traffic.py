"""What the GPUs of a job send each other for one optimizer step."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dsmigrate.languages import say
from dsmigrate.memory.formula import number
from dsmigrate.memory.gathering import kept, persistent
from dsmigrate.memory.model import Model, Surety
from dsmigrate.memory.scene import Scene
from dsmigrate.memory.usage import scene_of
from dsmigrate.rules.context import Context


class Collective(enum.Enum):
    """A kind of communication."""

    ALL_REDUCE = "all-reduce"
    REDUCE = "reduce"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_GATHER = "all-gather"
    ALL_TO_ALL = "all-to-all"

    @property
    def weight(self) -> int:
        """How many times its elements cross the wire of a GPU in a ring, about: an all-reduce is two passes."""
        return 2 if self is Collective.ALL_REDUCE else 1


@dataclass(frozen=True, slots=True)
class Transfer:
    """Collectives of one kind, for one purpose, in one optimizer step.

    ``what`` is "gradients" or "weights". ``portion`` is the share of the model's elements that one round of them moves,
    ``width`` the bytes of an element. A step has ``rounds * g + extra`` rounds, with g micro-batches. ``group`` is the
    number of GPUs among which they stay, 0 for all.
    """

    collective: Collective
    what: str
    width: float
    rounds: int
    extra: int = 0
    portion: float = 1.0
    group: int = 0
    surety: Surety = Surety.EXACT
    across: bool = False
    """Whether the group has one GPU of each group that shards everything, and not neighbours."""

    def elements(self, model: Model, steps: int) -> int:
        """Return the elements that go through the collectives of a step of ``steps`` micro-batches."""
        return round(model.parameters * self.portion * (self.rounds * steps + self.extra))

    def sent(self, model: Model, steps: int, ranks: int) -> int:
        """Return the bytes that one of ``ranks`` GPUs sends for it in a step, with ring algorithms."""
        size = self.group or ranks
        return round(self.elements(model, steps) * self.width * self.collective.weight * (size - 1) / size)


@dataclass(frozen=True, slots=True)
class Traffic:
    """The communication of a step: its parts, the micro-batches in it where these are known, and what was assumed."""

    stage: int
    transfers: tuple[Transfer, ...]
    steps: int | None
    assumes: tuple[str, ...] = ()

    def formula(self, transfers: Iterable[Transfer] | None = None) -> str:
        """Return the elements that a GPU sends in a step, about, an all-reduce counted as 2Ψ: "(2g + 1)Ψ".

        g is the number of micro-batches, which is put in where it is known. Transfers inside of groups are left out.
        """
        per_batch = per_step = 0.0
        for one in self.transfers if transfers is None else transfers:
            if not one.group or one.across:
                per_batch += one.rounds * one.portion * one.collective.weight
                per_step += one.extra * one.portion * one.collective.weight
        if self.steps is not None:
            whole = per_batch * self.steps + per_step
            return f"{number(whole)}Ψ" if whole else "0"
        if not per_batch:
            return f"{number(per_step)}Ψ" if per_step else "0"
        rest = number(per_step) or "1"
        return f"{number(per_batch)}gΨ" if rest == "0" else f"({number(per_batch)}g + {rest})Ψ"

    def elements(self, model: Model) -> int | None:
        """Return the elements that a GPU sends in a step, about, an all-reduce counted twice; None without g."""
        if self.steps is None:
            return None
        return sum(one.elements(model, self.steps) * one.collective.weight for one in self.transfers)

    def sent(self, model: Model, ranks: int) -> int | None:
        """Return the bytes that a GPU sends in a step with ring algorithms; None where g is not known."""
        if self.steps is None:
            return None
        return sum(one.sent(model, self.steps, ranks) for one in self.transfers)


def traffic(context: Context, model: Model | None = None, ranks: int | None = None) -> Traffic | None:
    """Return what one optimizer step sends; None where the ZeRO stage is not known.

    ``model`` and ``ranks`` default to the facts beside the file; stage 3 sends less for a small model, whose parameters
    stay gathered between forward and backward. Norms, overflow flags, batches, activations of other parallelisms and
    what checkpoints send are not counted. At stage 3 the first two micro-batches of a run gather more.
    """
    scene = scene_of(context, model, ranks)
    if scene is None:
        return None
    transfers = () if scene.ranks == scene.replicas == 1 else tuple(_transfers(scene))
    nodes = (say("several nodes"),) if any(one.collective is Collective.ALL_TO_ALL for one in transfers) else ()
    return Traffic(scene.stage, transfers, scene.steps, scene.assumes + nodes)


def _transfers(scene: Scene) -> Iterator[Transfer]:
    if not scene.stage:
        yield Transfer(Collective.ALL_REDUCE, "gradients", scene.communication, 0, 1)
    elif scene.stage < 3:
        yield from _partitioned(scene)
    else:
        yield from _sharded(scene)


def _partitioned(scene: Scene) -> Iterator[Transfer]:
    """Yield what stage 1 and 2 send.

    Stage 1 reduces once, at the gradient accumulation boundary, stage 2 in every micro-batch
    (deepspeed/runtime/engine.py:allreduce_gradients). A bucket is all-reduced and then sliced, unless
    ``use_multi_rank_bucket_allreduce`` is off, or not there yet: then each owner gets its slices by a reduce of its own
    (deepspeed/runtime/zero/stage_1_and_2.py:average_tensor). Afterwards all gather the weights.
    """
    by_owner = (
        scene.is_contiguous
        and scene.is_on("reduce_scatter", otherwise=True)
        and not scene.is_on("use_multi_rank_bucket_allreduce")
        and not scene.is_bf16_optimizer
    )
    kind = Collective.REDUCE if by_owner else Collective.ALL_REDUCE
    once = scene.stage == 1 and not scene.has("zenflow")
    yield Transfer(kind, "gradients", scene.communication, rounds=0 if once else 1, extra=1 if once else 0)
    yield Transfer(Collective.ALL_GATHER, "weights", scene.weights, 0, 1)


def _sharded(scene: Scene) -> Iterator[Transfer]:
    """Yield what stage 3 sends: weights for forward and backward, gradients, all in every micro-batch.

    Backward gathers only what was not kept since forward. Small tensors are gathered once, after the step.
    """
    model, small = scene.model, persistent(scene)
    portion = again = 1.0
    if model is not None and model.parameters:
        portion = (model.elements - small) / model.parameters
        again = max(0.0, portion - kept(scene) / model.parameters)
    width = 1 if scene.is_on("zero_quantized_weights") else scene.gathered_width
    yield from _gathers(scene, width, portion, again)
    if small and model is not None:
        rest = small / model.parameters
        yield Transfer(Collective.ALL_GATHER, "weights", scene.weights, 0, 1, rest, _mics(scene))
    yield from _reduced(scene)


def _gathers(scene: Scene, width: float, portion: float, again: float) -> Iterator[Transfer]:
    """Yield the gathers of forward and backward.

    With hierarchical groups all but the first gather of a step stay inside the group
    (deepspeed/runtime/zero/stage3.py:invalidate_secondary_tensor). One all-reduce of zero-filled buffers can stand for
    gathers of more than one tensor; it is counted for all (deepspeed/runtime/zero/partition_parameters.py:Init).
    """
    group = scene.group
    filled = scene.is_on("stage3_use_all_reduce_for_fetch_params") and width == scene.gathered_width
    kind = Collective.ALL_REDUCE if filled else Collective.ALL_GATHER
    known = scene.model is not None and scene.model.tensors and width == scene.gathered_width
    sure = Surety.EXACT if known else Surety.ESTIMATE  # the scales of quantized weights are not counted
    if group > 1:
        yield Transfer(kind, "weights", width, 0, 1, portion, surety=sure)
        yield Transfer(Collective.ALL_GATHER, "weights", width, 1, -1, portion, group, sure)
        yield Transfer(Collective.ALL_GATHER, "weights", width, 1, 0, again, group, Surety.ESTIMATE)
        return
    inside = _mics(scene)
    yield Transfer(kind, "weights", width, 1, 0, portion, inside, sure)
    if again:
        yield Transfer(kind, "weights", width, 1, 0, again, inside, Surety.ESTIMATE)


def _mics(scene: Scene) -> int:
    """Return the GPUs of a group of MiCS, inside of which weights and gradients stay; 0 where all exchange them."""
    return scene.ranks or 0 if scene.replicas > 1 else 0


def _reduced(scene: Scene) -> Iterator[Transfer]:
    """Yield what becomes of gradients at stage 3 (deepspeed/runtime/zero/stage3.py:__reduce_and_partition_ipg_grads).

    ``reduce_scatter`` false all-reduces the bucket, if there is one. ``zero_quantized_gradients`` sends 4 bits per
    element in two rounds of all-to-all, on several nodes; on one it changes nothing. The groups of MiCS add up their
    shards once, at the gradient accumulation boundary (deepspeed/runtime/zero/mics.py:allreduce_mics_shard_grads).
    """
    if scene.is_on("zero_quantized_gradients"):
        yield Transfer(Collective.ALL_TO_ALL, "gradients", 0.5, 1, 0, surety=Surety.ESTIMATE)
        return
    whole = scene.is_contiguous and not scene.is_on("reduce_scatter", otherwise=True)
    kind = Collective.ALL_REDUCE if whole else Collective.REDUCE_SCATTER
    yield Transfer(kind, "gradients", scene.communication, 1, 0, group=_mics(scene))
    if scene.replicas > 1:
        portion = 1 / (scene.ranks or 1)
        wire = scene.communication
        yield Transfer(Collective.ALL_REDUCE, "gradients", wire, 0, 1, portion, scene.replicas, across=True)
