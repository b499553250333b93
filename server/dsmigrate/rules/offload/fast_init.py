"""DS535: batched initialization with buffers that are too small for it."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZERO, switched_on

_KEY = f"{ZERO}.offload_optimizer.fast_init"
_BUFFER = f"{ZERO}.offload_param.buffer_size"
_GROUP = f"{ZERO}.sub_group_size"
_HEAD = '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": '
_NVME = '{"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/l", '


@rule(
    "DS535",
    "fast-init-buffers",
    summary="`fast_init` with `offload_param.buffer_size` below `sub_group_size`.",
    why="Batched initialization reads whole sub-groups of parameters into the buffers of `offload_param`. With the "
    "default sizes, "
    "buffers of 1e8 and sub-groups of 1e9 elements, it stops with an AssertionError as soon as there is something "
    "to do.",
    severity=Severity.WARNING,
    effect=Effect.CRASH,
    source=("deepspeed/runtime/swap_tensor/optimizer_utils.py:OptimizerSwapper",),
    keys=(_KEY, _BUFFER),
    examples=(
        Example(
            _HEAD + _NVME + '"fast_init": «true»}, "offload_param": {"device": "nvme", "nvme_path": "/l"}}}\n',
            fixed=_HEAD + _NVME.rstrip(", ") + '}, "offload_param": {"device": "nvme", "nvme_path": "/l"}}}\n',
            accepted=None,  # asynchronous I/O needs libaio
        ),
        Example(
            _HEAD
            + _NVME
            + '"fast_init": true}, "offload_param": {"device": "nvme", "nvme_path": "/l", "buffer_size": 1e9}}}\n',
            accepted=None,  # asynchronous I/O needs libaio
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the switch."""
    if context.stage != 3 or switched_on(context, _KEY) is None:
        return
    if context.device("offload_optimizer") != "nvme" or context.device("offload_param") != "nvme":
        return
    buffer, group = context.number(_BUFFER), context.number(_GROUP)
    if buffer is None or group is None or buffer >= group:
        return
    yield context.finding(
        _KEY,
        say(
            "buffers of {buffer} elements do not hold a sub-group of up to {group}: raise "
            "`offload_param.buffer_size` or lower `sub_group_size`",
            buffer=int(buffer),
            group=int(group),
        ),
        fixes=[context.remove(_KEY, say("Remove `fast_init`"), safe=False)],
        related=[(path, say("too small for it")) for path in (_BUFFER, _GROUP) if context.has(path)],
    )
