"""What a recommendation is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dsmigrate.knowledge import Consumer
from dsmigrate.memory.activations import Checkpointing, Workload
from dsmigrate.memory.estimate import Machine
from dsmigrate.memory.shape import Described
from dsmigrate.memory.variants import VARIANTS, Variant


@dataclass(frozen=True, slots=True)
class Request:
    """A model, machines and work, and what is fixed already.

    ``work`` has the micro-batch and the sequence; how activations are kept is chosen among ``kept``, in order of
    preference. ``half`` is "bf16", "fp16" or "fp32", ``steps`` the micro-batches of a step. ``link`` is the slowest
    link that GPUs exchange through, a name of schemas/machines.toml. ``nvme_path`` None leaves NVMe out. ``variants``
    are those to choose from.
    """

    described: Described
    machine: Machine
    work: Workload
    half: str = "bf16"
    steps: int = 1
    samples: int | None = None
    """Samples of a step on all GPUs, for which micro-batch and accumulation are chosen; None takes both as given."""
    link: str = "nvlink"
    inner: str | None = None
    """The link between the GPUs of a node; None where it is the same."""
    hardware: str | None = None
    nvme_path: str | None = None
    consumer: Consumer = Consumer.DEEPSPEED
    version: str | None = None
    kept: tuple[Checkpointing, ...] = (Checkpointing.NONE, Checkpointing.FULL)
    variants: tuple[Variant, ...] = VARIANTS
    plain: bool = False
    """Whether only what changes neither numbers nor the script may be chosen."""
    assumed: tuple[str, ...] = ()
    """What was taken for granted where nothing was said, as whole sentences."""

    @property
    def per_gpu(self) -> int | None:
        """The samples of a step on one GPU, or on those that share each; None where the batch is given."""
        return None if self.samples is None else max(1, self.samples * self.work.shared // self.machine.ranks)

    @property
    def divides(self) -> bool:
        """Whether the samples of a step divide over the GPUs, or those that share each."""
        return self.samples is None or self.samples * self.work.shared % self.machine.ranks == 0

    def sharing(self, ranks: int) -> Request:
        """Return the same where so many GPUs share each sample: a step of as many samples has more micro-batches."""
        steps = self.steps if self.samples is not None else self.steps * ranks
        return replace(self, work=replace(self.work, shared=ranks), steps=steps)

    def sized(self, micro_batch: int) -> Request:
        """Return the same with a micro-batch, and the accumulation that it takes for the samples of a step."""
        steps = self.steps if self.per_gpu is None else max(1, self.per_gpu // micro_batch)
        return replace(self, work=replace(self.work, micro_batch=micro_batch), steps=steps)
