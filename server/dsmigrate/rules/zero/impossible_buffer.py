"""DS427: a buffer that no memory holds."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZERO, given, offloads_optimizer

_BUCKET = f"{ZERO}.reduce_bucket_size"
_SWAP = f"{ZERO}.offload_param.buffer_size"
_MOST = 2**44
"""Elements that take more than any machine has."""


@rule(
    "DS427",
    "impossible-buffer",
    summary="A buffer with more elements than any memory holds.",
    why="The numbers count elements, and DeepSpeed makes the buffers in one piece: gradient buckets when the engine is "
    "built at stage 3 and in the first step at stages 1 and 2, swap buffers for parameters on NVMe when the engine is "
    "built. torch then refuses to allocate them, or even to count their elements.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/zero/stage3.py:_setup_for_real_optimizer",
        "deepspeed/runtime/zero/stage_1_and_2.py:backward_prologue",
        "deepspeed/runtime/swap_tensor/partitioned_param_swapper.py:AsyncPartitionedParameterSwapper",
    ),
    keys=(_BUCKET, _SWAP),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 3, "reduce_bucket_size": «50000000000000»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 3}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 3, '
            '"offload_param": {"device": "nvme", "nvme_path": "/nvme", "buffer_size": «1e18»}}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 3, '
            '"offload_param": {"device": "nvme", "nvme_path": "/nvme"}}}\n',
        ),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 0, "reduce_bucket_size": 50000000000000}}\n'),
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2, "contiguous_gradients": false, '
            '"reduce_bucket_size": 50000000000000}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each of the two sizes that is used."""
    contiguous = context.is_on(f"{ZERO}.contiguous_gradients") or (context.stage != 3 and offloads_optimizer(context))
    swaps = context.stage == 3 and context.device("offload_param") == "nvme"
    for path, used in ((_BUCKET, bool(context.stage) and contiguous), (_SWAP, swaps)):
        size = context.number(path)
        if used and size is not None and size > _MOST and given(context, path) is not None:
            yield context.finding(
                path,
                say("no memory holds a buffer of {size} elements", size=json_text(size)),
                effect=None if context.stage == 3 else Effect.CRASH,
                fixes=[context.remove(path, say("Remove {path} and take its default", path=shown(path)), safe=False)],
            )
