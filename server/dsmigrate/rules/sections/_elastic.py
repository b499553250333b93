"""The batch size that elastic training computes, as DeepSpeed up to 0.19.7 does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dsmigrate.knowledge.versions import order
from dsmigrate.rules.batch._shared import is_elastic
from dsmigrate.rules.context import Context
from dsmigrate.rules.types._checked import as_number

SECTION = "elasticity"
CAP = f"{SECTION}.max_train_batch_size"
MICRO = f"{SECTION}.micro_batch_sizes"
LEAST = f"{SECTION}.min_gpus"
MOST = f"{SECTION}.max_gpus"
VERSION = f"{SECTION}.version"
PARALLEL = f"{SECTION}.model_parallel_size"
PER_NODE = f"{SECTION}.num_gpus_per_node"
NODES = 0.2
"""The version that counts nodes, and the default; 0.1 counts GPUs."""
_COMPOSITE = (
    *(1, 2, 4, 6, 12, 24, 36, 48, 60, 120, 180, 240, 360, 720, 840, 1260, 1680, 2520, 5040, 7560, 10080, 15120, 20160),
    *(25200, 27720, 45360, 50400, 55440, 83160, 110880, 166320, 221760, 277200, 332640, 498960, 554400, 665280, 720720),
)
"""The highly composite numbers that a batch is a multiple by (deepspeed/elasticity/elasticity.py:HCN_LIST)."""
_BOUNDED_SINCE = "0.19.6"
"""Before it the least common multiple of the micro-batches was taken for a batch even above the cap."""
_LARGE = 10**7
_MANY = 32
"""Larger batches, and more micro-batches, are not searched through."""
_BEYOND = 1e300
"""Where integers stop to fit a float."""


@dataclass(frozen=True, slots=True)
class Elastic:
    """The settings of an enabled section, all of which are numbers."""

    cap: float
    micro: tuple[int, ...]
    least: float
    most: float
    version: float
    parallel: float
    per_node: float
    larger: bool
    bounded: bool

    @property
    def ranks_per_node(self) -> float:
        """The data-parallel ranks of a node; 1 where single GPUs count."""
        return self.per_node // self.parallel if self.version == NODES else 1

    @property
    def limit(self) -> float:
        """What no micro-batch may be above."""
        return int(self.cap / self.ranks_per_node) if self.version == NODES else self.cap


def elastic(context: Context) -> Elastic | None:
    """Return the settings when elastic training is on; None when it is off, or when one of them is no number."""
    micro = elastic_micro_batches(context)
    if micro is None:
        return None
    cap, *counts = (_number(context.value(path)) for path in (CAP, VERSION, LEAST, MOST, PARALLEL, PER_NODE))
    if cap is None or not all(count is not None and count > 0 for count in counts):
        return None
    version, least, most, parallel, per_node = (count or 0 for count in counts)
    return Elastic(
        cap=cap,
        micro=micro,
        least=least,
        most=most,
        version=version,
        parallel=parallel,
        per_node=per_node,
        larger=bool(context.is_on(f"{SECTION}.prefer_larger_batch")),
        bounded=order(context.known.version) >= order(_BOUNDED_SINCE),
    )


def elastic_micro_batches(context: Context) -> tuple[int, ...] | None:
    """Return the micro-batches when elastic training is on and they are integers, else None."""
    micro = context.value(MICRO) if is_elastic(context) else None
    return tuple(micro) if isinstance(micro, list) and all(isinstance(item, int) for item in micro) else None


def fitting(settings: Elastic, ranks: int | None) -> Sequence[int] | None:
    """Return the numbers of ranks that the batch is for when ``ranks`` start; None where that is not known.

    Expects settings that ``ElasticityConfig`` takes, with micro-batches up to the limit.
    """
    if len(settings.micro) > _MANY or max(settings.cap, math.lcm(*settings.micro)) > _LARGE:
        return None
    if settings.version != NODES:
        return _counts(settings, settings.cap, settings.least, settings.most) or []
    nodes, each = settings.per_node, settings.ranks_per_node
    counts = _counts(settings, settings.limit, int(settings.least / nodes), int(settings.most / nodes))
    regular = [int(count * each) for count in counts or ()]
    if ranks is None:
        certain = settings.parallel > 1 or counts is None
        return [count for count in regular if count // settings.parallel in regular] if certain else None
    if counts is None or ranks // settings.parallel in regular:
        return regular
    own = ranks / nodes * each
    sizes = [micro * own * (settings.cap // (micro * own)) for micro in settings.micro]
    return [int(own)] if (max(sizes) if settings.larger else min(sizes)) > 0 else []


def _counts(settings: Elastic, cap: float, least: float, most: float) -> list[int] | None:
    """Return the numbers of GPUs that the batch with most of them divides over evenly; None when no batch is chosen."""
    most = most or cap // min(settings.micro)
    best, found = min(settings.micro), None
    for size in _candidates(settings, cap):
        counts = _divisions(size, settings.micro, least or 1, most)
        better = size > best if settings.larger else size < best
        if len(counts) > len(found or ()) or (len(counts) == len(found or ()) and better):
            best, found = size, counts
    return found


def _candidates(settings: Elastic, cap: float) -> Iterable[int]:
    for base in (*settings.micro, math.lcm(*settings.micro)):
        if base < cap:
            times = [number for number in _COMPOSITE if number <= cap // base]
            yield times[-1] * base
        elif base == cap or not settings.bounded:
            yield base


def _divisions(size: int, micro: Iterable[int], least: float, most: float) -> list[int]:
    found: set[int] = set()
    for one in micro:
        whole, rest = divmod(size, one)
        if rest == 0:
            low = {count for count in range(1, math.isqrt(whole) + 1) if whole % count == 0}
            found |= low | {whole // count for count in low}
    return sorted(count for count in found if least <= count <= most)


def _number(value: object) -> float | None:
    """Return a number; one written as a text is one for the version alone, whose list holds such texts."""
    if isinstance(value, str):
        value = as_number(value)
    return value if isinstance(value, int | float) and -_BEYOND < value < _BEYOND else None
