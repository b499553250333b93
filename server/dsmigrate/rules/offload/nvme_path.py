"""DS520: NVMe offload without a place on the disk."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZERO

_ADAM = '"optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, '


@rule(
    "DS520",
    "nvme-without-path",
    summary="Offload to NVMe at stage 3 without `nvme_path`.",
    why="Stage 3 joins file names to the path: without one the engine stops with a TypeError about `None` for the "
    "optimizer and "
    "an AssertionError for parameters.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/zero/stage3.py:_configure_tensor_swapping",
        "deepspeed/runtime/zero/partition_parameters.py:_validate_remote_device",
    ),
    keys=(f"{ZERO}.offload_optimizer.nvme_path", f"{ZERO}.offload_param.nvme_path"),
    pains=(27,),
    examples=(
        Example(
            '{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 3, "offload_optimizer": {"device": «"nvme"»}}}\n',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": «null»}}}\n',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/local"}}}\n',
            accepted=None,  # asynchronous I/O needs libaio
        ),
        Example(
            '{"train_batch_size": 1, '
            + _ADAM
            + '"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme"}}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each section without a path."""
    if context.stage != 3:
        return
    for name in ("offload_optimizer", "offload_param"):
        device, path = f"{ZERO}.{name}.device", f"{ZERO}.{name}.nvme_path"
        if context.raw(device) == "nvme" and context.value(path) is None:
            where = path if context.has(path) else device
            yield context.finding(
                where, say("`{name}` to NVMe needs `nvme_path`, a directory on a local disk", name=name)
            )
