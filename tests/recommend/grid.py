"""Many models on many machines, for many releases and readers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.memory.activations import Workload
from dsmigrate.memory.estimate import GIB, Machine
from dsmigrate.memory.sources import typical
from dsmigrate.recommend import Request

SIZES = (125e6, 350e6, 1.3e9, 2.7e9, 7e9, 13e9, 30e9, 70e9, 175e9, 1e12)
GPUS = (
    ("t4", 16, "pcie"),
    ("v100", 32, "nvlink"),
    ("rtx 4090", 24, "pcie"),
    ("a100", 80, "nvlink"),
    ("h200", 141, "nvlink"),
)
COUNTS = ((1, 1), (4, 1), (8, 1), (8, 2), (8, 16))
VERSIONS = (None, "0.9.5", "0.12.6", "0.14.5", "0.16.4", "0.18.9", "0.19.7")
WORK = (Workload(1, 2048), Workload(4, 1024), Workload(8, 4096))


def requests() -> Iterator[Request]:
    """Yield 250 requests: sizes, GPUs and counts crossed, the rest in turn."""
    for number, (size, (hardware, memory, link), (gpus, nodes)) in enumerate(itertools.product(SIZES, GPUS, COUNTS)):
        second = number // len(COUNTS) % 2
        yield Request(
            described=typical(int(size)),
            machine=Machine(gpus, nodes, memory * GIB, _host(number)),
            work=WORK[(number + second) % len(WORK)],
            half="fp16" if hardware in {"t4", "v100"} else ("bf16", "bf16", "fp32")[number % 3],
            steps=(1, 4, 16)[number % 3],
            link=link if nodes == 1 else ("infiniband", "ethernet")[number % 2],
            hardware=hardware,
            nvme_path="/local_nvme" if second else None,
            consumer=list(Consumer)[number % 3],
            version=VERSIONS[number % len(VERSIONS)],
        )


def _host(number: int) -> int | None:
    """Return the bytes of host memory of a node, in turn; None is not known."""
    memory = (256, 512, 1024, 2048, None)[number % 5]
    return None if memory is None else memory * GIB
