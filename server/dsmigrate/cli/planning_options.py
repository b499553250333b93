"""Flags that ``memory`` and ``recommend`` share: the model, the machines, the work, and what they come to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from dsmigrate.memory.activations import Attention, Loss, Workload
from dsmigrate.memory.estimate import GIB, Machine
from dsmigrate.memory.shape import Described
from dsmigrate.memory.sources import ModelError, described, shaped, typical
from dsmigrate.memory.trained import BASES, narrowed
from dsmigrate.recommend.speed import machines
from dsmigrate.settings.check import size_of
from dsmigrate.settings.errors import SettingsError

_Function = TypeVar("_Function", bound=Callable[..., Any])
_COUNT = click.IntRange(min=1, max=10**6)
_SIZE = click.FloatRange(min=0, max=10**9, min_open=True)
_FLAGS = (
    click.option("--model", type=click.Path(path_type=Path), metavar="PATH",
                 help="config.json, .safetensors file or index, or a folder with them."),
    click.option("--params", metavar="N", help="Number of parameters, such as 7b, in place of --model."),
    click.option("--layers", type=_COUNT, help="Blocks of the model, with --params."),
    click.option("--hidden", type=_COUNT, help="Its width."),
    click.option("--heads", type=_COUNT, help="Its attention heads."),
    click.option("--vocab", type=_COUNT, help="Its vocabulary."),
    click.option("--trainable", metavar="N|PATH",
                 help="What of it trains: a number such as 40m, or an adapter_config.json (LoRA). Default: all."),
    click.option("--base", type=click.Choice(list(BASES)),
                 help="How the weights that do not train are kept; default that of config.json, or 16bit."),
    click.option("--gpus", type=_COUNT, default=1, show_default=True, help="GPUs of a node."),
    click.option("--nodes", type=_COUNT, default=1, show_default=True, help="Nodes."),
    click.option("--gpu", type=click.Choice(list(machines()["presets"]), case_sensitive=False), metavar="NAME",
                 help="The GPU, such as a100-80gb: its memory, and for recommend its speed and links."),
    click.option("--host-memory", type=_SIZE, metavar="GIB", help="Host memory of a node."),
    click.option("--host-reserve", type=click.FloatRange(min=0), metavar="GIB",
                 help="What of the host's memory is left free; default a tenth."),
    click.option("--headroom", type=click.FloatRange(min=0), metavar="GIB",
                 help="What of a GPU is left free; default 8 %, at least 1.5 GiB."),
    click.option("--micro-batch", type=_COUNT, help="Samples that a GPU works on at a time; default 1."),
    click.option("--sequence", type=_COUNT, default=2048, show_default=True, help="Tokens of a sample."),
    click.option("--attention", type=click.Choice([one.value for one in Attention]), default="flash", show_default=True,
                 help="Whether attention keeps scores."),
    click.option("--loss", type=click.Choice([one.value for one in Loss]),
                 help="How the loss over words is computed; default as the model's class does it in Transformers."),
    click.option("--deepspeed-version", "--target-version", "deepspeed_version", metavar="VERSION",
                 help="DeepSpeed release; default the newest known."),
)  # fmt: skip


def planning_options(command: _Function) -> _Function:
    """Give a command the shared flags."""
    for flag in reversed(_FLAGS):
        command = flag(command)
    return command


def model_of(flags: dict[str, Any]) -> Described:
    """Return the model that the flags describe; raises UsageError."""
    names = ("layers", "hidden", "heads", "vocab")
    shape = {name: flags[name] for name in names}
    if (flags["model"] is None) == (flags["params"] is None):
        raise click.UsageError("give the model: --model PATH, or --params 7b; one of the two")
    try:
        if flags["model"] is not None:
            found = shaped(described(flags["model"]), **shape)
        else:
            found = typical(
                size_of(flags["params"], "--params"), shape["layers"], shape["hidden"], shape["heads"], shape["vocab"]
            )
        if flags["trainable"] is not None:
            return narrowed(found, flags["trainable"], flags["base"])
    except (SettingsError, ModelError) as error:
        raise click.UsageError(str(error)) from None
    if flags["base"] is not None:
        raise click.UsageError("--base: give --trainable too: weights that train are never quantised")
    return found


def machine_of(flags: dict[str, Any], gpu_memory: float | None, nvme: float | None = None) -> Machine:
    """Return the machines that the flags describe; memory is given in GiB."""
    headroom, reserve = flags["headroom"], flags["host_reserve"]
    if gpu_memory is None and flags["gpu"] is not None:
        gpu_memory = machines()["presets"][flags["gpu"]][0]
    return Machine(
        gpus=flags["gpus"],
        nodes=flags["nodes"],
        gpu=_bytes(gpu_memory),
        host=_bytes(flags["host_memory"]),
        nvme=_bytes(nvme),
        headroom=None if headroom is None else int(headroom * GIB),
        host_reserve=None if reserve is None else int(reserve * GIB),
    )


def work_of(flags: dict[str, Any], micro_batch: int | None = None) -> Workload:
    """Return what a GPU works on, without checkpointing; ``micro_batch`` is what the config says."""
    return Workload(
        flags["micro_batch"] or micro_batch or 1,
        flags["sequence"],
        attention=Attention(flags["attention"]),
        loss=None if flags["loss"] is None else Loss(flags["loss"]),
    )


def _bytes(gib: float | None) -> int | None:
    return None if gib is None else int(gib * GIB)
