"""What memory and communication depend on, read from a config once: formats, optimizer, ranks, accumulation."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from functools import cached_property

from dsmigrate.editing.derived.batch import replaced_steps, triad
from dsmigrate.editing.derived.force import CONTIGUOUS, OVERLAP, in_force
from dsmigrate.editing.derived.precision import WIDTHS, precision
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.knowledge import MISSING, Status
from dsmigrate.knowledge.versions import order
from dsmigrate.languages import say
from dsmigrate.memory.model import Model, Over
from dsmigrate.rules.context import UNKNOWN, Context
from dsmigrate.rules.precision._shared import BF16_STATES, low_masters, mode, uses_bf16_optimizer
from dsmigrate.rules.typed import given

ZERO = "zero_optimization"
_FP32_SUMS_IN_SHARDS_SINCE = "0.19.8"
_ADAM_STATES = 2
_FP32 = 4
_FUSED = frozenset({"Adam", "AdamW"})
_ALIGNED_BYTES = 16
"""What ``parameter_alignment`` aligns tensors to (deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer)."""


@dataclass(frozen=True)
class Scene:
    """A config with the model and the number of GPUs that share it; ``model`` and ``ranks`` may be None."""

    context: Context
    stage: int
    model: Model | None
    ranks: int | None
    """The GPUs that the shards of stage 3 are divided over: those of a MiCS group where there is one."""
    replicas: int = 1
    """The groups of MiCS, each of which has everything."""

    @cached_property
    def assumes(self) -> tuple[str, ...]:
        """What the config leaves open, as ends of a sentence."""
        assumed = {
            say("16-bit weights"): precision(self.context).weights is None,
            say("an optimizer with two states per parameter, as Adam"): self._states is None,
            say("more than one micro-batch per step"): self.sums_on_host and self.steps is None,
        }
        return tuple(what for what, is_assumed in assumed.items() if is_assumed)

    @cached_property
    def weights(self) -> int:
        """Bytes of a weight; 2 where the consumer decides."""
        return WIDTHS[precision(self.context).weights or "bf16"]

    @property
    def frozen_width(self) -> float:
        """Bytes of a weight that does not train; ``zero_quantized_nontrainable_weights`` makes it one at stage 3."""
        if self.stage == 3 and self.is_on("zero_quantized_nontrainable_weights"):
            return 1
        quantised = None if self.model is None else self.model.frozen_width
        return self.weights if quantised is None else quantised

    @property
    def gathered_width(self) -> float:
        """Bytes of a weight on average, the frozen ones counted as well."""
        if self.model is None or not self.model.frozen:
            return self.weights
        share = self.model.parameters / self.model.elements
        return self.weights * share + self.frozen_width * (1 - share)

    @cached_property
    def sums(self) -> int:
        """Bytes of an element of the gradients that micro-batches are summed in."""
        found = precision(self.context)
        return self.weights if found.sums is None else WIDTHS[found.sums]

    @cached_property
    def communication(self) -> int:
        """Bytes of an element of gradients on the wire.

        With sequence parallelism the buckets of stage 1 and 2 travel in fp32
        (deepspeed/runtime/zero/stage_1_and_2.py:allreduce_bucket).
        """
        found = precision(self.context).communication
        if self.stage in {1, 2} and not self.is_bf16_optimizer and self._sequence > 1:
            return _FP32
        return self.weights if found is None else WIDTHS[found]

    @cached_property
    def masters(self) -> int:
        """Bytes of a master weight, and of a gradient in the step; in 16 bit with ZeRO's own optimizers alone."""
        if not self.stage or self.is_bf16_optimizer:
            return _FP32
        return WIDTHS[precision(self.context).masters or "fp32"]

    @cached_property
    def states(self) -> int:
        """Bytes of optimizer state per parameter."""
        count = _ADAM_STATES if self._states is None else self._states
        return count * self._state_width

    @cached_property
    def _states(self) -> int | None:
        """Elements of state per parameter; None where the script makes the optimizer, or the model decides."""
        facts = self.context.type_of("optimizer")
        if facts is None or facts.states is None:
            return None
        params = given(self.context, "optimizer")
        return facts.states + sum(count for name, count in facts.switched_states.items() if params.get(name))

    @cached_property
    def _state_width(self) -> int:
        """Bytes of one element of state: fp32 unless the masters are in 16 bit.

        With 16-bit masters the CPU optimizers keep fp32 states unless told otherwise, the others those of the masters
        (deepspeed/ops/adam/cpu_adam.py:DeepSpeedCPUAdam, deepspeed/ops/adam/fused_adam.py:FusedAdam).
        """
        params = given(self.context, "optimizer")
        half = BF16_STATES in low_masters(self.context) or params.get("fp32_optimizer_states") is False
        return self.masters if half or not self.is_offloaded else _FP32

    @property
    def optimizer_device(self) -> str:
        """Where the optimizer works: "none", "cpu" or "nvme"; "none" where it is not known, and at stage 0."""
        device = self.context.device("offload_optimizer") or "none"
        if not self.stage or self.is_bf16_optimizer:
            return "none"
        return "cpu" if device == "nvme" and self.stage < 3 else device

    @property
    def parameter_device(self) -> str:
        """Where the shards of stage 3 lie between uses."""
        return self.context.device("offload_param") or "none" if self.stage == 3 else "none"

    @property
    def is_offloaded(self) -> bool:
        """Whether the optimizer works on the host."""
        return self.optimizer_device != "none"

    @property
    def is_partial(self) -> bool:
        """Whether a part of the optimizer stays on the GPU (``offload_optimizer.ratio``)."""
        ratio = self.context.number(f"{ZERO}.offload_optimizer.ratio")
        return self.stage == 3 and self.optimizer_device == "cpu" and ratio is not None and ratio < 1

    @property
    def group(self) -> int:
        """The GPUs that share a second shard of the weights at stage 3; 1 where there is none."""
        if self.stage < 3:
            return 1
        wanted = (
            max(1, self.number("zero_hpz_partition_size")) if has_key(self.context, "zero_hpz_partition_size") else 1
        )
        return wanted if self.ranks is None else min(wanted, self.ranks)

    @property
    def is_bf16_optimizer(self) -> bool:
        """Whether ``BF16_Optimizer`` takes the place of stage 1."""
        return uses_bf16_optimizer(self.context)

    @property
    def has_mode(self) -> bool:
        """Whether ``fp16`` or ``bf16`` is on, or the consumer decides: at stage 0 there are master weights then."""
        return mode(self.context) != "fp32"

    @property
    def is_flattened(self) -> bool:
        """Whether FusedAdam, or what may be it, takes the gradients of a group as one tensor at stage 0."""
        facts = self.context.type_of("optimizer")
        return facts is None or (facts.name in _FUSED and not given(self.context, "optimizer").get("torch_adam"))

    @cached_property
    def steps(self) -> int | None:
        """Micro-batches in an optimizer step; None where nobody knows, and with ZeRO's own rhythm of ZenFlow."""
        found = triad(self.context)
        if replaced_steps(self.context) or found is None or found.steps is None:
            return None
        return whole(found.steps)

    @property
    def is_summed_in_shards(self) -> bool:
        """Whether stage 1 and 2 sum fp32 gradients of 16-bit weights in a buffer of the shard's size."""
        since = order(self.context.known.version) >= order(_FP32_SUMS_IN_SHARDS_SINCE)
        return since and self.sums == _FP32 and self.weights == 2

    @property
    def sums_on_host(self) -> bool:
        """Whether stage 2 sums the gradients of more than one micro-batch in a buffer of its own on the host."""
        return self.stage == 2 and self.is_offloaded and not self.is_summed_in_shards and self.masters == _FP32

    @property
    def buffer(self) -> int:
        """Bytes of an element of the buffers that stage 1 and 2 reduce: sums at stage 1, gradients at stage 2."""
        return self.sums if self.stage == 1 else self.weights

    @property
    def is_contiguous(self) -> bool:
        """Whether gradients are copied into a standing bucket."""
        return in_force(self.context, CONTIGUOUS) is not False

    @property
    def overlaps(self) -> bool:
        """Whether communication overlaps backward."""
        return in_force(self.context, OVERLAP) is True

    @property
    def _sequence(self) -> int:
        return whole(self.context.number("sequence_parallel_size")) or 1

    def number(self, name: str) -> int:
        """Return a size or count of ``zero_optimization``; its default, or 0, where it makes no sense."""
        path = f"{ZERO}.{name}"
        found = self.context.number(path)
        size = whole(found)
        if size is None and found is not None and found > 0:
            return 10**18
        return (whole(self.context.known.default(path)) or 0) if size is None else size

    def is_on(self, name: str, *, otherwise: bool = False) -> bool:
        """Return whether a switch of ``zero_optimization`` is on; ``otherwise`` where the release has no such key."""
        path = f"{ZERO}.{name}"
        if not has_key(self.context, name):
            return otherwise
        return bool(self.context.is_on(path))

    def has(self, name: str) -> bool:
        """Return whether a section of ``zero_optimization`` is given and read."""
        key = self.context.known.key(f"{ZERO}.{name}")
        return (
            key is not None
            and key.status is Status.PRESENT
            and self.context.raw(f"{ZERO}.{name}") not in (MISSING, None, UNKNOWN)
        )

    def count(self, over: Over, divisor: int = 1) -> int | None:
        """Return the elements of a share with the padding of the stage; None where model or ranks are not known.

        Stage 1 and 2 pad the flat buffer of a parameter group to a multiple of ``2 * ranks`` (one group is assumed),
        with ``parameter_alignment`` each tensor to 16 bytes; stage 3 pads each tensor to a multiple of the ranks.
        """
        if self.model is None:
            return None
        if over is Over.MODEL and self.stage in {0, 3}:
            return self.model.parameters
        if over is Over.GROUP:
            return _ceil(self.model, divisor)
        if self.ranks is None:
            return None
        if self.stage == 3:
            return _ceil(self.model, self.ranks)
        padded = math.ceil(self._aligned(self.model) / (2 * self.ranks)) * 2 * self.ranks
        return padded if over is Over.MODEL else padded // self.ranks

    def _aligned(self, model: Model) -> int:
        """Return the elements of the flat buffer of stage 1 and 2 before its end is padded."""
        if not model.tensors or self.is_bf16_optimizer or not self.is_on("parameter_alignment"):
            return model.parameters
        *inner, last = model.tensors
        to = _ALIGNED_BYTES // self.weights
        return last + sum(math.ceil(size / to) * to for size in inner)


def has_key(context: Context, name: str) -> bool:
    """Return whether the release has a key of ``zero_optimization``."""
    key = context.known.key(f"{ZERO}.{name}")
    return key is not None and key.status in {Status.PRESENT, Status.DEPRECATED}


def mics_group(context: Context) -> int | None:
    """Return the GPUs that share everything at stage 3 with MiCS (deepspeed/runtime/zero/mics.py); None without it."""
    size = whole(context.number(f"{ZERO}.mics_shard_size")) if has_key(context, "mics_shard_size") else None
    return size if context.stage == 3 and size is not None and size > 0 else None


def ranks_of(context: Context) -> int | None:
    """Return how many GPUs share the model states: the world size, less tensor parallelism; None where unknown.

    Ranks of sequence parallelism share as well (deepspeed/runtime/engine.py:_configure_zero_optimizer takes
    ``seq_data_parallel_group``).
    """
    world = context.facts.world_size
    inner = whole(context.number("tensor_parallel.autotp_size")) or 1
    return None if world is None or world % inner else world // inner


def model_of(context: Context) -> Model | None:
    """Return the model as far as the facts beside the file tell: its number of parameters, and what of it is frozen."""
    parameters, model = context.facts.parameters, context.facts.model
    if not parameters:
        return None
    return Model(parameters) if model is None else Model(parameters, (), model.frozen, model.frozen_width)


@functools.lru_cache(maxsize=32)
def _ceil(model: Model, ranks: int) -> int:
    return sum(math.ceil(size / ranks) for size in model.tensors or (model.parameters,))
