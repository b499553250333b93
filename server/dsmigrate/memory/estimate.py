"""A config, a model, machines and a workload together: what it takes, whether it fits, and what else would."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, replace
from functools import cached_property

from dsmigrate.editing.derived.precision import WIDTHS, precision
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.memory.activations import Workload, activations
from dsmigrate.memory.model import Model, Place, Usage, What, total
from dsmigrate.memory.shape import Described
from dsmigrate.memory.traffic import Traffic, traffic
from dsmigrate.memory.usage import usage
from dsmigrate.rules import Finding
from dsmigrate.rules.context import Context

GIB = 1 << 30
_LEAST_HEADROOM, _SHARE_OF_HEADROOM = 3 * GIB // 2, 0.08
_MOST_SAMPLES = 10**5
_SHARE_OF_HOST = 0.9
"""What of the host's memory may be planned with, unless what is left is given."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machines of a job; memory in bytes, None where it is not known.

    ``gpus`` are those of a node, ``host`` and ``nvme`` what a node has. ``headroom`` is what of a GPU is left free: for
    the CUDA context, buffers of NCCL and cuBLAS, and what the allocator cannot use. It is 8 % by default, and at least
    1.5 GiB, which is a rule of thumb.
    """

    gpus: int = 1
    nodes: int = 1
    gpu: int | None = None
    host: int | None = None
    nvme: int | None = None
    headroom: int | None = None
    host_reserve: int | None = None
    """What of a node's host memory is left to the system, the loader and the launcher; None is a tenth of it."""

    @property
    def ranks(self) -> int:
        """The processes of the job, one per GPU."""
        return self.gpus * self.nodes

    @property
    def reserved(self) -> int:
        """The bytes of a GPU that are left free; 0 where its memory is not known."""
        if self.gpu is None:
            return 0
        return max(_LEAST_HEADROOM, round(self.gpu * _SHARE_OF_HEADROOM)) if self.headroom is None else self.headroom

    @property
    def room(self) -> int | None:
        """The bytes of a GPU that can be planned with."""
        return None if self.gpu is None else max(0, self.gpu - self.reserved)

    @property
    def host_room(self) -> int | None:
        """The bytes of a node's host memory that can be planned with."""
        if self.host is None:
            return None
        return int(self.host * _SHARE_OF_HOST) if self.host_reserve is None else max(0, self.host - self.host_reserve)


@dataclass(frozen=True)
class Estimate:
    """What a config takes on each rank, activations included where the shape of the model is known."""

    name: str
    context: Context
    described: Described
    model: Model
    machine: Machine
    work: Workload
    usage: Usage
    traffic: Traffic
    assumes: tuple[str, ...]
    rejected: tuple[Finding, ...] = ()
    """Why DeepSpeed does not start with the config."""

    def of(self, work: Workload) -> Estimate:
        """Return the same for another workload: with its activations."""
        parts = self.usage.select(what=set(What) - {What.ACTIVATIONS})
        shape = self.described.shape
        extra = (
            ()
            if shape is None
            else tuple(activations(shape, work, width_of(self.context), frozen=self._head_is_frozen))
        )
        return replace(self, work=work, usage=replace(self.usage, parts=(*parts, *extra)))

    @property
    def _head_is_frozen(self) -> bool:
        shape = self.described.shape
        return (
            bool(self.model.frozen) and shape is not None and shape.vocabulary * shape.hidden not in self.model.tensors
        )

    @cached_property
    def peak(self) -> int | None:
        """Bytes of a GPU at the peak."""
        return self.usage.peak(Place.GPU)

    @cached_property
    def moment(self) -> str:
        """When a GPU holds the most, in words; "" where that is not known."""
        found = self.usage.moment(Place.GPU)
        return "" if found is None else found.value

    @cached_property
    def by_kind(self) -> dict[What, int]:
        """Bytes of a GPU at the peak, by what takes them; empty where a part is not known."""
        parts = self.usage.at_peak(Place.GPU)
        if total(parts) is None:
            return {}
        found = {what: sum(part.bytes or 0 for part in parts if part.what is what) for what in What}
        return {what: count for what, count in found.items() if count}

    def on_node(self, place: Place) -> int | None:
        """Return the bytes of host memory or NVMe that the ranks of a node take together."""
        found = self.usage.bytes(place)
        return None if found is None else found * self.machine.gpus

    @property
    def sent(self) -> int | None:
        """Bytes that a GPU sends in an optimizer step; None where the micro-batches in it are not known."""
        return self.traffic.sent(self.model, self.machine.ranks)

    @cached_property
    def lacks(self) -> tuple[str, ...]:
        """What does not fit: "GPU", "host", "NVMe"; a memory of unknown size is large enough."""
        rooms = (
            ("GPU", self.peak, self.machine.room),
            ("host", self.on_node(Place.HOST), self.machine.host_room),
            ("NVMe", self.on_node(Place.NVME), self.machine.nvme),
        )
        return tuple(name for name, need, room in rooms if need is not None and room is not None and need > room)

    @property
    def fits(self) -> bool | None:
        """Whether everything fits; None where the GPU's memory or a part is not known."""
        if self.machine.gpu is None or self.peak is None:
            return False if self.lacks else None
        return not self.lacks

    @cached_property
    def largest_micro_batch(self) -> int | None:
        """The most samples at a time that a GPU has room for; None without activations or the GPU's memory."""
        room = self.machine.room
        if room is None or self.described.shape is None or self.peak is None:
            return None

        def too_large(samples: int) -> bool:
            return (self.of(replace(self.work, micro_batch=samples)).peak or 0) > room

        return bisect.bisect_left(range(1, _MOST_SAMPLES), 1, key=too_large)


def estimate(name: str, context: Context, described: Described, machine: Machine, work: Workload) -> Estimate | None:
    """Return what a config takes; None where its ZeRO stage is not known."""
    parallel = whole(context.number("tensor_parallel.autotp_size")) or 1
    assumes: tuple[str, ...] = ()
    model = described.model
    if parallel > 1:
        split = Model.of(-(-size // parallel) for size in model.tensors or (model.parameters,))
        model = replace(
            split, frozen=tuple(-(-size // parallel) for size in model.frozen), frozen_width=model.frozen_width
        )
        assumes = (f"every tensor split over {parallel} GPUs of tensor parallelism",)
    sharing = whole(context.number("sequence_parallel_size")) or 1
    if sharing > 1 and machine.ranks % sharing == 0:
        work = replace(work, shared=sharing)
        assumes += (f"every sample shared among {sharing} GPUs by the script (Ulysses)",)
    ranks = max(1, machine.ranks // parallel)
    held, sent = usage(context, model, ranks), traffic(context, model, ranks)
    if held is None or sent is None:
        return None
    bare = Estimate(name, context, described, model, machine, work, held, sent, (*held.assumes, *assumes))
    return bare.of(work)


def width_of(context: Context) -> int:
    """Return the bytes of an element of the weights, and of activations; 2 where the consumer decides."""
    return WIDTHS[precision(context).weights or "bf16"]
