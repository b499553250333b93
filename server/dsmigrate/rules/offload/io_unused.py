"""DS560: disk settings that nothing uses."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity, Tag
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import PARAM_DEVICE, section, switched_on

_SECTION = "aio"
_GDS = "aio.use_gds"


@rule(
    "DS560",
    "unused-aio",
    summary="An `aio` section without NVMe offload at stage 3 or the FAST checkpoint writer; `use_gds` without "
    "parameters on NVMe.",
    why="The NVMe swappers of stage 3 and the FAST checkpoint writer read the section, nothing else does. GPUDirect "
    "Storage serves "
    "parameters and that writer; optimizer states always travel through host memory.",
    severity=Severity.INFO,
    effect=Effect.IGNORED,
    source=(
        "deepspeed/runtime/swap_tensor/aio_config.py:get_aio_config",
        "deepspeed/runtime/swap_tensor/partitioned_param_swapper.py:AsyncPartitionedParameterSwapper",
    ),
    keys=(_SECTION, _GDS),
    examples=(
        Example(
            '{"train_batch_size": 1, «"aio": {"queue_depth": 16}», "zero_optimization": {"stage": 2}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 2}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "aio": {«"use_gds": true»}, "optimizer": {"type": "AdamW", "params": {"lr": '
            "0.001}}, "
            '"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/l"}}}\n',
            fixed='{"train_batch_size": 1, "aio": {}, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, '
            '"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/l"}}}\n',
            accepted=None,  # asynchronous I/O needs libaio
        ),
        Example(
            '{"train_batch_size": 1, "aio": {"queue_depth": 16}, "checkpoint": {"writer": {"type": "FAST"}}, '
            '"zero_optimization": {"stage": 3}}\n',
            accepted=None,  # asynchronous I/O needs libaio
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the section, or at the switch for GPUDirect Storage."""
    entry = section(context, _SECTION)
    if entry is None or not context.raw(_SECTION) or context.stage is None:
        return
    devices = {context.device("offload_optimizer"), context.device("offload_param")} if context.stage == 3 else {"none"}
    writer = section(context, "checkpoint.writer") is not None
    fast = writer and str(context.value("checkpoint.writer.type")).upper() == "FAST"
    if fast or None in devices:
        return
    if "nvme" not in devices:
        yield context.finding(
            entry,
            say("nothing here is swapped to NVMe, so these settings are not used"),
            part="member",
            fixes=[context.remove(entry, say("Remove `aio`"), safe=True)],
            tags=[Tag.UNNECESSARY],
        )
    elif switched_on(context, _GDS) is not None and context.device("offload_param") != "nvme":
        yield context.finding(
            _GDS,
            say("GPUDirect Storage is for parameters, and `{param_device}` is not nvme", param_device=PARAM_DEVICE),
            part="member",
            fixes=[context.remove(_GDS, say("Remove `use_gds`"), safe=True)],
            tags=[Tag.UNNECESSARY],
        )
