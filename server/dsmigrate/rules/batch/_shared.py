"""The batch equation as DeepSpeed fills it in, and switches of this release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeGuard

from dsmigrate.knowledge import MISSING, Consumer, Status
from dsmigrate.rules.context import UNKNOWN, Context, Entry
from dsmigrate.rules.precision._shared import offloads, uses_bf16_optimizer

TOTAL = "train_batch_size"
MICRO = "train_micro_batch_size_per_gpu"
STEPS = "gradient_accumulation_steps"
SEQUENCE = "sequence_parallel_size"
DATA = "data_parallel_size"
WRAPPED = frozenset({Consumer.TRANSFORMERS, Consumer.ACCELERATE})
"""The consumers that hand the config through Accelerate's plugin."""

Number = int | float


@dataclass(frozen=True, slots=True)
class Batch:
    """The three batch keys; None is left out, UNKNOWN is filled by the consumer."""

    total: Number | object | None
    micro: Number | object | None
    steps: Number | object | None

    @property
    def pinned(self) -> list[Number]:
        """The micro-batch and the accumulation, as far as they are numbers."""
        return [value for value in (self.micro, self.steps) if isinstance(value, (int, float))]

    @property
    def is_pinned(self) -> bool:
        """Whether all three are numbers, so that only one number of ranks can fit."""
        return isinstance(self.total, (int, float)) and len(self.pinned) == 2


def fits(keys: Batch, ranks: Fraction) -> bool:
    """Return whether DeepSpeed accepts the keys on so many ranks, by the floor divisions that it makes itself."""
    total, micro, steps = keys.total, keys.micro, keys.steps
    if not isinstance(total, (int, float)):
        return True
    if UNKNOWN in (micro, steps):
        return Fraction(total) % (Fraction(math.prod(keys.pinned)) * ranks) == 0
    world = float(ranks) if ranks.denominator != 1 else int(ranks)
    if not world:  # so few that no float tells them from none
        return False
    if isinstance(micro, (int, float)):
        steps = steps if isinstance(steps, (int, float)) else total // micro // world
    else:
        steps = steps if isinstance(steps, (int, float)) else 1
        micro = total // world // steps
    return micro > 0 and steps > 0 and total == micro * steps * world


def batch(context: Context) -> Batch | None:
    """Return the batch keys; None when one of them is no number above 0, which other rules tell, or is computed."""
    if is_elastic(context):
        return None
    values: list[Number | object | None] = []
    for path in (TOTAL, MICRO, STEPS):
        value = context.value(path)
        if value is None or value is UNKNOWN:
            values.append(value)
            continue
        if not isinstance(value, (int, float)) or not -math.inf < value < math.inf or value <= 0:
            return None
        values.append(value)
    if values[2] is None and context.consumer in WRAPPED:
        values[2] = 1  # Accelerate's plugin writes it before DeepSpeed could derive it
    return Batch(*values)


def is_elastic(context: Context) -> bool:
    """Return whether elastic training computes the batch sizes, as releases before 0.19.7 do."""
    key = context.known.key("elasticity.enabled")
    return key is not None and key.status is Status.PRESENT and bool(context.is_on("elasticity.enabled"))


def degree(context: Context, path: str) -> int | None:
    """Return a positive whole number that the file gives, else None."""
    value = context.value(path)
    return int(value) if isinstance(value, int) and value > 0 else None


def data_ranks(context: Context) -> Fraction | None:
    """Return the world size of the batch equation: data-parallel ranks, a fraction where DeepSpeed divides so."""
    sequence, data = degree(context, SEQUENCE), degree(context, DATA)
    if sequence and data:
        return Fraction(data)
    if is_one_rank(context):
        return Fraction(1)
    if context.facts.world_size is None:
        return None
    shared = context.value(SEQUENCE) if divides(context) else None
    return Fraction(context.facts.world_size) / (Fraction(shared) if _is_positive(shared) else 1)


def _is_positive(value: object) -> TypeGuard[Number]:
    return isinstance(value, (int, float)) and 0 < value < math.inf


def divides(context: Context) -> bool:
    """Return whether this release divides the number of ranks by ``sequence_parallel_size``, as 0.17.0 and later do."""
    key = context.known.key(SEQUENCE)
    return key is not None and key.status is Status.PRESENT and key.is_read_by_config


def is_one_rank(context: Context) -> bool:
    """Return whether a size that cannot be divided by makes this release count one rank, as those before 0.19.3 do."""
    key, value = context.known.key(SEQUENCE), context.value(SEQUENCE)
    if key is None or not divides(context) or key.rejects_wrong_values or value in (MISSING, UNKNOWN):
        return False
    return not isinstance(value, (int, float)) or value == 0


def given(context: Context, path: str) -> Entry | None:
    """Return the member that gives a key which this release reads; None for none."""
    entry = context.entry(path)
    reads = entry is not None and entry.key is not None and entry.key.status in {Status.PRESENT, Status.DEPRECATED}
    return entry if reads else None


def scatters(context: Context) -> bool | None:
    """Return whether ZeRO reduces by reduce-scatter; None when unknown."""
    return context.is_on("zero_optimization.reduce_scatter")


def sums(context: Context) -> bool:
    """Return whether gradients are summed over the ranks and not averaged."""
    entry = given(context, "gradient_allreduce_op")
    return entry is not None and str(context.value("gradient_allreduce_op")).lower() == "sum"


def has_section(context: Context, path: str) -> bool:
    """Return whether the file has a section that is not empty or null."""
    return bool(context.raw(path))


def text(value: object) -> str:
    """Return a number as a message shows it: whole ones without a decimal point."""
    if isinstance(value, Fraction):
        return str(value.numerator) if value.denominator == 1 else f"{float(value):.4g}"
    return str(int(value)) if isinstance(value, (bool, float)) and value == int(value) else str(value)


def predivides(context: Context) -> bool:
    """Return whether the engine divides gradients by ``gradient_predivide_factor``, or refuses it for its value."""
    if sums(context) or context.is_on("prescale_gradients") is not False:
        return False
    if uses_bf16_optimizer(context):
        return True
    if context.stage in {1, 2} and scatters(context) is False:
        return context.is_on("zero_optimization.contiguous_gradients") is not False or bool(offloads(context))
    return context.stage in {0, 2, 3}
