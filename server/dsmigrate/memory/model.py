"""Parts of memory: what they hold, where they lie, when they exist, and over how many ranks they are divided."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from dsmigrate.languages import mark


class What(enum.Enum):
    """What a part of memory holds."""

    PARAMETERS = mark("parameters")
    """The weights that the model computes with, in their own format."""
    GRADIENTS = mark("gradients")
    MASTERS = mark("master weights")
    """The copy of the weights that the optimizer updates."""
    OPTIMIZER = mark("optimizer states")
    BUCKETS = mark("buckets")
    """Standing buffers that gradients are reduced in."""
    GATHERED = mark("gathered parameters")
    """Whole parameters at stage 3: in use, ahead of use, kept for their next use, and small ones that stay."""
    STEP = mark("gradients in the step")
    """Gradients in the format of the master weights, during the optimizer step."""
    STAGING = mark("transfer buffers")
    """Buffers on the way between GPU, host and NVMe."""
    COPIES = mark("copies")
    """Tensors that live for a reduction or a micro-batch."""
    ACTIVATIONS = "activations"
    """What forward keeps for backward; only where a model and a micro-batch are described."""


STATES = frozenset({What.PARAMETERS, What.GRADIENTS, What.MASTERS, What.OPTIMIZER})
"""What papers and estimators call model states."""


class Place(enum.Enum):
    """Where a part lies. HOST and NVME are those of one rank; the ranks of a node add up."""

    GPU = "GPU"
    HOST = "host"
    NVME = "NVMe"


class When(enum.Enum):
    """When a part exists."""

    ALWAYS = "always"
    FORWARD = "forward"
    """Kept by forward until backward has passed it."""
    LOSS = "loss"
    """While the loss and its gradient are computed."""
    BACKWARD = "backward"
    """From some moment of forward or backward on, gradients until the optimizer step."""
    STEP = "step"
    """During the optimizer step alone."""


class Over(enum.Enum):
    """What the elements of a part are a share of."""

    MODEL = "Ψ"
    """All parameters."""
    SHARD = "Ψ/N"
    """One part of N, where N GPUs share."""
    GROUP = "Ψ/G"
    """One part of G, where G GPUs of a hierarchical group share."""
    FROZEN = "frozen"
    """The weights that do not train, or a part of them."""
    COUNT = ""
    """A number of elements that the config gives, or that the model does."""


class Surety(enum.Enum):
    """How far a figure can be relied upon."""

    EXACT = "exact"
    BOUND = "at most"
    ESTIMATE = "about"


@dataclass(frozen=True, slots=True)
class Model:
    """The model as one rank of ZeRO sees it, before anything is sharded.

    ``parameters`` counts trainable elements; with tensor or pipeline parallelism those of the rank's own part.
    ``tensors`` are the sizes of the single tensors in the order of the model, where they are known: padding, the
    largest tensor and the small ones that stay gathered follow from them. ``frozen`` are the tensors that are computed
    with and not trained; ``frozen_width`` is bytes per element of them where they are quantised, None where they have
    the format of the other weights.
    """

    parameters: int
    tensors: tuple[int, ...] = ()
    frozen: tuple[int, ...] = ()
    frozen_width: float | None = None

    @classmethod
    def of(cls, tensors: Iterable[int]) -> Model:
        """Return the model that consists of tensors of these sizes."""
        sizes = tuple(tensors)
        return cls(sum(sizes), sizes)

    @property
    def largest(self) -> int | None:
        """The elements of the largest trained tensor; None where the tensors are not known."""
        return max(self.tensors) if self.tensors else None

    @property
    def elements(self) -> int:
        """All elements, the frozen ones as well."""
        return self.parameters + sum(self.frozen)

    @property
    def everything(self) -> tuple[int, ...]:
        """The sizes of all tensors, the frozen ones as well; empty where those that train are not known."""
        return (*self.tensors, *self.frozen) if self.tensors else ()

    @property
    def gathered(self) -> float:
        """How many times the elements that train stage 3 gathers."""
        return self.elements / self.parameters


@dataclass(frozen=True, slots=True)
class Part:
    """One part of memory of a rank.

    ``width`` is bytes per element. ``count`` is the number of elements, None where it takes a number of parameters or
    GPUs that is not known; ``over`` what it is a share of, and ``divisor`` the G of a group. ``pinned`` is whether host
    memory is page-locked.
    """

    what: What
    place: Place
    when: When
    width: float
    over: Over
    count: int | None
    says: str
    surety: Surety = Surety.EXACT
    pinned: bool = False
    divisor: int = 1

    @property
    def bytes(self) -> int | None:
        """The bytes; None where the number of elements is not known."""
        return None if self.count is None else round(self.count * self.width)


class Moment(enum.Enum):
    """The moments of a step, one of which has the peak."""

    END = "end of backward"
    """The end of backward: all gradients, and nothing of forward any more."""
    STEP = "step"
    TURN = "start of backward"
    """The first block of backward: all that forward kept, and gradients only of micro-batches before."""
    LOSS = "loss"


_HELD: dict[Moment, frozenset[When]] = {
    Moment.END: frozenset(),
    Moment.STEP: frozenset({When.STEP}),
    Moment.TURN: frozenset({When.FORWARD}),
    Moment.LOSS: frozenset({When.FORWARD, When.LOSS}),
}
_BEFORE_BACKWARD = frozenset({What.PARAMETERS, What.GATHERED, What.BUCKETS})
"""What of backward's is there when the loss is computed already."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The memory of one rank, part by part.

    ``assumes`` holds what the config leaves open and the figures take for granted, as ends of a sentence: "16-bit
    weights".
    """

    stage: int
    parts: tuple[Part, ...]
    assumes: tuple[str, ...] = ()
    sums: bool = True
    """Whether gradients of the micro-batches before are there while the next one runs forward."""

    def select(
        self, place: Place | None = None, what: Iterable[What] | None = None, when: Iterable[When] | None = None
    ) -> tuple[Part, ...]:
        """Return the parts at a place, of some kinds, at some times; None takes all."""
        kinds, times = None if what is None else set(what), None if when is None else set(when)
        return tuple(
            part
            for part in self.parts
            if (place is None or part.place is place)
            and (kinds is None or part.what in kinds)
            and (times is None or part.when in times)
        )

    def bytes(
        self, place: Place = Place.GPU, what: Iterable[What] | None = None, when: Iterable[When] | None = None
    ) -> int | None:
        """Return the bytes of selected parts together; None where one of them is not known."""
        return total(self.select(place, what, when))

    def peak(self, place: Place = Place.GPU) -> int | None:
        """Return about the most bytes at one time; None where a part is not known."""
        return total(self.at_peak(place))

    def at_peak(self, place: Place = Place.GPU) -> tuple[Part, ...]:
        """Return the parts that ``peak`` counts: those of the moment that holds the most.

        Where a part is not known those of the end of backward are returned, and the unknown part with them.
        """
        moment = self.moment(place)
        if moment is not None:
            return self._at(place, moment)
        end = self._at(place, Moment.END)
        step = self._at(place, Moment.STEP)
        return end + tuple(part for part in step if part.bytes is None and part not in end)

    def moment(self, place: Place = Place.GPU) -> Moment | None:
        """Return the moment that holds the most; None where a part is not known."""
        sizes = {moment: total(self._at(place, moment)) for moment in Moment}
        known = {moment: size for moment, size in sizes.items() if size is not None}
        return max(known, key=lambda moment: known[moment]) if len(known) == len(sizes) else None

    def _at(self, place: Place, moment: Moment) -> tuple[Part, ...]:
        """Return the parts that are there at a moment; within it everything is counted as if it were held at once."""
        return tuple(part for part in self.parts if part.place is place and self._is_there(part, moment))

    def _is_there(self, part: Part, moment: Moment) -> bool:
        if part.when is not When.BACKWARD:
            return part.when is When.ALWAYS or part.when in _HELD[moment]
        if part.what is What.GRADIENTS:
            return self.sums or moment in {Moment.END, Moment.STEP}
        return moment in {Moment.END, Moment.TURN} or (moment is Moment.LOSS and part.what in _BEFORE_BACKWARD)


def total(parts: Iterable[Part]) -> int | None:
    """Return the bytes of parts together; None where one of them is not known."""
    sizes = [part.bytes for part in parts]
    return None if None in sizes else sum(size for size in sizes if size is not None)
