"""The ``deepspeed`` launcher's environment, and a script that saves a checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import deepspeed
import torch
from deepspeed.ops.op_builder import AsyncIOBuilder, UtilsBuilder

from tests.e2e.situations.script import Config, engine, train

BINDING = Path(deepspeed.__file__).parent / "ops/csrc/aio/py_lib/py_ds_aio.cpp"
TAKES = "py::init<const int, const int, const bool, const bool, const int>()"
"""What the handle of DeepNVMe is made from, in the source of its binding."""


class Handle:
    """A handle of DeepNVMe that takes numbers and switches, as its binding in C++ does, and writes nothing."""

    def __init__(
        self,
        block_size: int,
        queue_depth: int,
        single_submit: bool,
        overlap_events: bool,
        intra_op_parallelism: int,
    ) -> None:
        given = (block_size, queue_depth, single_submit, overlap_events, intra_op_parallelism)
        if not all(isinstance(argument, int) for argument in given):
            raise TypeError("__init__(): incompatible constructor arguments")

    def get_alignment(self) -> int:
        """Return the bytes of which every write is a multiple."""
        return 512

    def async_pwrite(self, *_: Any) -> int:
        """Begin to write nothing."""
        return 0

    def wait(self) -> int:
        """Return how many writes are done."""
        return 1


class Kernels:
    """The two extensions of the fast writer."""

    aio_handle = Handle

    @staticmethod
    def cast_to_byte_tensor(tensor: torch.Tensor) -> torch.Tensor:
        """Return the bytes of a tensor."""
        return tensor.view(torch.uint8)


def run(config: Config) -> None:
    """Train one step and save."""
    if TAKES not in BINDING.read_text(encoding="utf-8"):
        raise RuntimeError(f"the handle takes something else: {BINDING}")
    os.environ.update(CROSS_SIZE="1", CROSS_RANK="0")
    torch.Tensor.pin_memory = lambda tensor: tensor  # takes a GPU
    torch.multiprocessing.set_start_method("fork")  # the decoupled writer's process keeps what is replaced here
    AsyncIOBuilder.load = UtilsBuilder.load = lambda *_, **__: Kernels
    built = engine(config, torch.nn.Linear(4, 2))
    train(built, torch.ones(1, 4))
    built.save_checkpoint("saved")
    train(built, torch.ones(1, 4))
    built.destroy()
