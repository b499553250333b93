"""DS130: a count or a size below what makes sense, where nothing checks it."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.consumer._shared import is_effective
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.keys._shared import HERE
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.types._shared import is_shadowed, judge
from dsmigrate.rules.types._values import shown_value

_IO = ("aio.block_size", "aio.queue_depth", "aio.intra_op_parallelism")
_ONE = (
    *_IO,
    "comet.samples_log_interval",
    "checkpoint.writer.io_buffer_size",
    "checkpoint.writer.io_multiplier",
    "data_efficiency.data_sampling.num_epochs",
    "autotuning.tuner_num_trials",
    "autotuning.num_tuning_micro_batch_sizes",
    "hybrid_engine.inference_tp_size",
)
_ZERO = (
    "flops_profiler.top_modules",
    "flops_profiler.recompute_fwd_factor",
    "pipeline.activation_checkpoint_interval",
    "activation_checkpointing.number_checkpoints",
    "data_efficiency.data_sampling.num_workers",
    "tensor_parallel.autotp_size",
    "zero_optimization.stage3_module_granularity_threshold",
)
_DIVIDES = "aio.intra_op_parallelism"
"""What the alignment of swapped tensors is multiplied with, and their sizes then divided by."""
_MOST = 2**31 - 1
_LEAST = dict.fromkeys(_ONE, 1) | dict.fromkeys(_ZERO, 0)
"""The least number that does something; batch sizes, clipping, printing and loss scaling have rules of their own."""


@rule(
    "DS130",
    "unchecked-range",
    summary="A count or a size that is zero, negative or no C integer, where DeepSpeed does not check it.",
    why="These keys have no range in DeepSpeed: the number is accepted, and the feature fails later or does nothing. "
    "With NVMe offload an `aio.intra_op_parallelism` of 0 is a `ZeroDivisionError` when the engine is built, and a "
    "number of the section above 2147483647 a `TypeError` of the compiled code.",
    severity=Severity.WARNING,
    effect=Effect.RISKY,
    source=("deepspeed/runtime/swap_tensor/aio_config.py", "deepspeed/runtime/config.py:get_pipeline_config"),
    keys=("aio.queue_depth", "pipeline.activation_checkpoint_interval"),
    examples=(
        Example('{"train_batch_size": 8, "aio": {"queue_depth": «0»}}'),
        Example('{"train_batch_size": 8, "pipeline": {"activation_checkpoint_interval": «-1»}}'),
        Example(
            '{"train_batch_size": 8, "aio": {"intra_op_parallelism": «0»}, '
            '"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/nvme"}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "aio": {"block_size": «4294967296»}, '
            '"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/nvme"}}}',
            accepted=False,
        ),
        Example('{"train_batch_size": 8, "aio": {"block_size": 4294967296}, "zero_optimization": {"stage": 2}}'),
        Example(
            '{"train_batch_size": 8, "aio": {"queue_depth": 1}, "comet": {"enabled": false, "samples_log_interval": 0}}'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each number below the least that does something, or above the most that can be handed on."""
    for entry in context.entries:
        key, node = entry.key, entry.node
        least = None if key is None else _LEAST.get(key.path)
        if key is None or node is None or least is None or key.status not in HERE or is_shadowed(context, entry.path):
            continue
        value = node.value()
        if judge(context, entry) is not None or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        handed_on = key.path in _IO and bool(is_effective(context, key, entry.path))
        large = handed_on and value > _MOST
        switch = f"{key.parent}.enabled"
        if not (large or value < least) or (context.known.key(switch) is not None and context.is_on(switch) is False):
            continue
        divides = handed_on and key.path == _DIVIDES and value == 0
        limit = say("{most} or less", most=_MOST) if large else say("{least} or more", least=least)
        does = say("divides by it") if divides else say("takes {value} without a check", value=shown_value(value))
        yield context.finding(
            entry,
            say("{path} has to be {limit}; DeepSpeed ", path=shown(entry.path), limit=limit)
            + (say("hands it on as a C integer, which it is not") if large else does),
            severity=Severity.ERROR if divides or large else None,
            effect=Effect.REJECTED if divides or large else None,
        )
