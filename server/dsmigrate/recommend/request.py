"""What a recommendation is asked for."""

from __future__ import annotations

from dataclasses import dataclass

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
    link: str = "nvlink"
    hardware: str | None = None
    nvme_path: str | None = None
    consumer: Consumer = Consumer.DEEPSPEED
    version: str | None = None
    kept: tuple[Checkpointing, ...] = (Checkpointing.NONE, Checkpointing.FULL)
    variants: tuple[Variant, ...] = VARIANTS
