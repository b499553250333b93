"""DS530: too few buffers to swap optimizer states."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZERO, place, switched_on

_SECTION = f"{ZERO}.offload_optimizer"
_KEY = f"{_SECTION}.buffer_count"
_PIPES = (f"{_SECTION}.pipeline_read", f"{_SECTION}.pipeline_write")
_TENSORS = 4
"""What Adam needs for a sub-group: master weights, gradient and two moments."""
_HEAD = '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": '
_NVME = '{"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/l", '


@rule(
    "DS530",
    "few-swap-buffers",
    summary="Too few buffers for optimizer states on NVMe, of which reading ahead and writing behind need more.",
    why="Adam occupies 4 buffers per sub-group: master weights, gradient and two moments. `pipeline_read` and "
    "`pipeline_write` "
    "keep one more sub-group each in buffers. When they run out, the step stops with an AssertionError; a rank "
    "whose shard is a "
    "single sub-group never needs the second set. Without any buffer the engine stops with an `IndexError`.",
    severity=Severity.WARNING,
    effect=Effect.CRASH,
    source=(
        "deepspeed/runtime/swap_tensor/pipelined_optimizer_swapper.py:PipelinedOptimizerSwapper",
        "deepspeed/runtime/swap_tensor/partitioned_optimizer_swapper.py:PartitionedOptimizerSwapper",
    ),
    keys=(_KEY, *_PIPES),
    pains=(28,),
    examples=(
        Example(
            _HEAD + _NVME + '"pipeline_read": «true», "pipeline_write": true}}}\n',
            fixed=_HEAD + _NVME + '"pipeline_read": true, "pipeline_write": true, "buffer_count": 12}}}\n',
            accepted=None,  # asynchronous I/O needs libaio
        ),
        Example(
            _HEAD + _NVME + '"buffer_count": «3»}}}\n',
            fixed=_HEAD + _NVME + '"buffer_count": 4}}}\n',
            accepted=None,  # asynchronous I/O needs libaio
        ),
        Example(
            _HEAD + _NVME + '"buffer_count": «0»}}}\n',
            fixed=_HEAD + _NVME.rstrip(", ") + "}}}\n",
            accepted=None,  # asynchronous I/O needs libaio
        ),
        Example(_HEAD + _NVME + '"pipeline_read": true, "buffer_count": 8}}}\n', accepted=None),  # libaio, too
        Example(_HEAD + _NVME + '"buffer_count": 4}}}\n', accepted=None),  # libaio, too
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the number of buffers, or at the switch that needs more of them."""
    count, kind = context.number(_KEY), context.type_of("optimizer")
    if context.stage != 3 or context.device("offload_optimizer") != "nvme" or count is None:
        return
    if count == 0 and context.has(_KEY):
        yield context.finding(
            _KEY,
            say("without buffers the swapper has nothing to align: the engine stops with an `IndexError`"),
            severity=Severity.ERROR,
            effect=Effect.REJECTED,
            fixes=[context.remove(_KEY, say("Remove `{key}` and take its default", key=_KEY), safe=False)],
        )
        return
    if kind is None or kind.name.lower() not in {"adam", "adamw"}:
        return
    pipes = [path for path in _PIPES if switched_on(context, path) is not None]
    needed = _TENSORS * (1 + len(pipes))
    if count >= needed:
        return
    names = say(" and ").join(f"`{path.rpartition('.')[2]}`" for path in pipes)
    where = context.path_of(_KEY)
    write = context.replace if context.has(_KEY) else context.insert
    yield context.finding(
        place(context, _KEY, pipes[0] if pipes else _SECTION),
        say(
            "{count} buffers are too few: Adam needs {needed}{more}",
            count=int(count),
            needed=needed,
            more=say(" with {names}", names=names) if pipes else "",
        ),
        fixes=[write(where, needed, say("Use {needed} buffers", needed=needed), safe=False)],
    )
