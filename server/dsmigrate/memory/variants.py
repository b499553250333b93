"""The stages with the places that each can keep things in, as configs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dsmigrate.document import parse
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Consumer
from dsmigrate.memory.activations import Workload
from dsmigrate.memory.estimate import Estimate, Machine, estimate
from dsmigrate.memory.shape import Described
from dsmigrate.rules import Facts, Settings

Config = dict[str, Any]
HALVES = ("bf16", "fp16", "fp32")


@dataclass(frozen=True, slots=True)
class Variant:
    """A ZeRO stage, and where optimizer and weights lie: "none", "cpu" or "nvme"."""

    stage: int
    optimizer: str = "none"
    weights: str = "none"
    group: int = 0
    """GPUs that share a second shard of the weights (hpZ), so that only the first gather of a step leaves them."""
    quantised: bool = False
    """Whether weights are gathered in 8 bit, which changes numbers."""
    low: bool = False
    """Whether master weights and optimizer states are in bf16 as well, which changes numbers."""
    sequence: int = 1
    """GPUs that share the tokens of each sample (Ulysses), which the script has to do."""

    @property
    def name(self) -> str:
        """What tables call it: "ZeRO-3, optimizer on CPU, weights on NVMe"."""
        shown = {"cpu": "CPU", "nvme": "NVMe"}
        said = [f"ZeRO-{self.stage}"]
        if self.optimizer == self.weights != "none":
            said.append(f"all on {shown[self.optimizer]}")
        else:
            said += [
                f"{what} on {shown[device]}"
                for what, device in (("optimizer", self.optimizer), ("weights", self.weights))
                if device != "none"
            ]
        if self.group:
            said.append(f"hpZ of {self.group}")
        if self.quantised:
            said.append("8-bit gathers")
        if self.low:
            said.append("bf16 states")
        if self.sequence > 1:
            said.append(f"Ulysses of {self.sequence}")
        return ", ".join(said)

    @property
    def is_exact(self) -> bool:
        """Whether it computes in the formats of the others."""
        return not self.quantised and not self.low

    @property
    def is_plain(self) -> bool:
        """Whether it changes neither numbers nor the script."""
        return self.is_exact and self.sequence == 1

    @property
    def uses_nvme(self) -> bool:
        """Whether something lies on NVMe."""
        return "nvme" in {self.optimizer, self.weights}

    def section(self, path: str = "/nvme") -> Config:
        """Return ``zero_optimization`` with what makes the variant."""
        found: Config = {"stage": self.stage}
        if self.group:
            found["zero_hpz_partition_size"] = self.group
        if self.quantised:
            found["zero_quantized_weights"] = True
        for key, device in (("offload_optimizer", self.optimizer), ("offload_param", self.weights)):
            if device != "none":
                found[key] = {"device": device} | ({"nvme_path": path} if device == "nvme" else {})
        return found


VARIANTS = (
    Variant(0),
    Variant(1),
    Variant(2),
    Variant(3),
    Variant(1, "cpu"),
    Variant(2, "cpu"),
    Variant(3, "cpu"),
    Variant(3, "none", "cpu"),
    Variant(3, "cpu", "cpu"),
    Variant(3, "nvme"),
    Variant(3, "nvme", "cpu"),
    Variant(3, "cpu", "nvme"),
    Variant(3, "nvme", "nvme"),
)
"""What there is to choose from. NVMe below stage 3 acts as the CPU does, and weights stay on the GPU there."""


def compared(
    described: Described, machine: Machine, work: Workload, *, half: str, steps: int, version: str | None
) -> list[Estimate]:
    """Return every variant with the defaults of a release, Adam, and ``half`` out of ``HALVES``."""
    found = []
    for variant in VARIANTS:
        config: Config = {
            "train_micro_batch_size_per_gpu": work.micro_batch,
            "gradient_accumulation_steps": steps,
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
            "zero_optimization": variant.section(),
        }
        if half != "fp32":
            config[half] = {"enabled": True}
        one = estimate(
            variant.name, seen(config, machine, described, version=version).context, described, machine, work
        )
        if one is not None:
            found.append(one)
    return found


def seen(
    config: Config,
    machine: Machine,
    described: Described,
    *,
    version: str | None = None,
    consumer: Consumer = Consumer.DEEPSPEED,
    hardware: str | None = None,
) -> View:
    """Return a config as rules and figures see it, for such machines and such a model."""
    facts = Facts(
        world_size=machine.ranks, gpu_memory=machine.gpu, parameters=described.model.parameters, hardware=hardware
    )
    return View(parse(json.dumps(config, indent=2)), Settings(version=version, consumer=consumer, facts=facts))
