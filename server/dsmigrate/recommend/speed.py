"""About how long a step takes, for the order of choices alone: sums of published round figures."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsmigrate.memory.activations import Checkpointing
from dsmigrate.memory.estimate import Estimate, width_of
from dsmigrate.memory.model import Place, What
from dsmigrate.memory.variants import Variant
from dsmigrate.recommend.request import Request
from dsmigrate.schemas_location import schema_toml

_PER_WEIGHT, _PER_TRAINED, _AGAIN = 4, 2, 2
"""Operations per parameter and token: two forward, two backward; two more for the gradient of one that trains, and two
to compute a forward again."""
_HIDDEN = 2 / 3
"""The share of compute that communication can hide behind: backward."""
_SEEN = 0.2
"""The share of communication that is never hidden: the first and the last of it, and what follows the step."""
_HOOKS = 1.05
"""What gathering module by module costs at stage 3, beside what it sends."""


@functools.cache
def machines() -> Mapping[str, Any]:
    """Return the round figures (schemas/machines.toml)."""
    return schema_toml("machines.toml")


@dataclass(frozen=True, slots=True)
class Seconds:
    """Seconds of a step, by what takes them; ``sending`` is what computation does not hide."""

    computing: float
    sending: float
    moving: float
    """Between GPU, host and NVMe."""
    updating: float
    """The optimizer on the CPU."""

    @property
    def total(self) -> float:
        """All of it."""
        return self.computing + self.sending + self.moving + self.updating


def seconds(request: Request, one: Estimate, variant: Variant, tuned: int, *, overlaps: bool = True) -> Seconds:
    """Return about how long a step takes; ``tuned`` counts how often sizes were made smaller than is quickest.

    ``overlaps``: gradients are sent while backward goes on.
    """
    parameters, ranks = one.model.parameters, request.machine.ranks
    shape = one.described.shape
    tokens = one.work.micro_batch * (one.work.tokens(shape) if shape else one.work.sequence) * request.steps
    again = _AGAIN if one.work.checkpointing is not Checkpointing.NONE else 0
    each = (_PER_WEIGHT + again) * one.model.elements + _PER_TRAINED * parameters
    computing = each * tokens / operations(request.hardware)
    sending = _sending(request, one) * (1 + 0.05 * tuned)
    if variant.stage == 3:
        computing *= _HOOKS
    if ranks > 1 and overlaps:
        sending = max(_SEEN * sending, sending - _HIDDEN * computing)
    sending += exchanged(one) * request.steps / machines()["links"][request.inner or request.link]
    updating = 0.0
    if variant.optimizer != "none":
        updating = machines()["host"]["adam"] * parameters / 1e9 / request.machine.nodes
    return Seconds(computing, sending, _moving(request, one, variant), updating)


def exchanged(one: Estimate) -> float:
    """Return the bytes that a GPU sends in a micro-batch to share its samples with others (Ulysses).

    Each block gives tokens for heads and back: of queries, keys, values and what comes of them, in forward and in
    backward, and once more where a block is computed again. Keys are repeated where there are fewer heads than GPUs.
    """
    shape, work = one.described.shape, one.work
    if shape is None or work.shared == 1:
        return 0.0
    elements = 2 * shape.head_size * (shape.heads + max(shape.key_value_heads, work.shared))
    passes = 2 if work.checkpointing is Checkpointing.NONE else 3
    tokens, width = work.micro_batch * work.tokens(shape), width_of(one.context)
    return passes * shape.layers * tokens * elements * width * (work.shared - 1) / work.shared


def _sending(request: Request, one: Estimate) -> float:
    """Return the seconds on the wire: what stays inside of groups of a node takes the link there."""
    links, total = machines()["links"], 0.0
    for transfer in one.traffic.transfers:
        inside = transfer.group and not transfer.across
        link = request.inner or request.link if inside else request.link
        total += transfer.sent(one.model, request.steps, request.machine.ranks) / links[link]
    return total


def operations(hardware: str | None) -> float:
    """Return the operations per second that a GPU reaches in training; a usual one's where none is named."""
    found, name = machines(), known_gpu(hardware or "")
    return float(found["compute"]["share"] * (found["compute"]["any"] if name is None else found["gpus"][name]))


def known_gpu(hardware: str) -> str | None:
    """Return the GPU that a text names; None for one that is not known."""
    names = sorted((name for name in machines()["gpus"] if name in hardware.lower()), key=len)
    return names[-1] if names else None


def _moving(request: Request, one: Estimate, variant: Variant) -> float:
    """Return the seconds for what crosses PCIe and NVMe: gradients down and weights up, weights for each use."""
    ranks, steps, host = request.machine.ranks, request.steps, machines()["host"]
    shard, weights = one.model.parameters / ranks, one.model.elements / ranks
    crossing = 0.0
    if variant.optimizer != "none":
        crossing += 2 * shard * (steps + 1)
    if variant.weights != "none":
        crossing += 2 * weights * 2 * steps
    kept = one.usage.bytes(Place.HOST, (What.ACTIVATIONS,)) or 0
    crossing += 2 * kept * steps
    swapped = (one.on_node(Place.NVME) or 0) * 2
    return crossing / float(host["pcie"]) + swapped / float(host["nvme"])
