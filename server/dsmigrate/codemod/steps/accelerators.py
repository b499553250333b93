"""MG213: a script that trains on the CPU alone, while the engine takes the accelerator of the machine."""

from __future__ import annotations

import re
from collections.abc import Iterable

import libcst as cst

from dsmigrate.codemod.flow import argument
from dsmigrate.codemod.model import Idea, Kind
from dsmigrate.codemod.plan import Plan

IDEAS = (
    Idea(
        "MG213",
        "The engine takes the machine's accelerator",
        "deepspeed.initialize moves the model to a GPU where there is one; a script for the CPU alone keeps its batches there.",
        "The first forward would stop with tensors on two devices. DS_ACCELERATOR=cpu in the environment of the launcher "
        "keeps the engine on the CPU.",
        "deepspeed/accelerator/real_accelerator.py, get_accelerator; deepspeed/runtime/engine.py, _configure_distributed_model",
        Kind.KEPT,
    ),
)
_OTHER_DEVICES = re.compile(r"cuda|\b(?:xpu|npu|mps|hpu|gpu)\b|accelerator|set_device")


def on_cpu(plan: Plan, groups: Iterable[cst.Call]) -> None:
    """Say how a script that knows no device but the CPU stays there: its process groups are gloo's."""
    backends = [argument(call, 0, "backend") for call in groups]
    if not backends or not all(isinstance(b, cst.SimpleString) and b.evaluated_value == "gloo" for b in backends):
        return
    if any(_OTHER_DEVICES.search(part.module.code) for part in plan.tree.parts):
        return
    plan.kept("MG213", plan.wraps[0].statement, "this script trains on the CPU: on a machine with GPUs start it with DS_ACCELERATOR=cpu",
              "the engine would move the model to a GPU, and the batches stay where they are")  # fmt: skip
