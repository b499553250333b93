"""DS130: a count or a size below what makes sense, where nothing checks it."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.rules.consumer._shared import is_effective
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.keys._shared import HERE
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.types._shared import is_shadowed, judge
from dsmigrate.rules.types._values import shown_value

_ONE = (
    "aio.block_size",
    "aio.queue_depth",
    "aio.intra_op_parallelism",
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
_LEAST = dict.fromkeys(_ONE, 1) | dict.fromkeys(_ZERO, 0)
"""The least number that does something; batch sizes, clipping, printing and loss scaling have rules of their own."""


@rule(
    "DS130",
    "unchecked-range",
    summary="A count or a size that is zero or negative, where DeepSpeed does not check it.",
    why="These keys have no range in DeepSpeed: the number is accepted, and the feature fails later or does nothing. "
    "With NVMe offload an `aio.intra_op_parallelism` of 0 is a `ZeroDivisionError` when the engine is built.",
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
            '{"train_batch_size": 8, "aio": {"queue_depth": 1}, "comet": {"enabled": false, "samples_log_interval": 0}}'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each number below the least that does something."""
    for entry in context.entries:
        key, node = entry.key, entry.node
        least = None if key is None else _LEAST.get(key.path)
        if key is None or node is None or least is None or key.status not in HERE or is_shadowed(context, entry.path):
            continue
        value = node.value()
        if (
            judge(context, entry) is not None
            or isinstance(value, bool)
            or not isinstance(value, int | float)
            or value >= least
        ):
            continue
        switch = f"{key.parent}.enabled"
        if context.known.key(switch) is not None and context.is_on(switch) is False:
            continue
        divides = key.path == _DIVIDES and value == 0 and bool(is_effective(context, key, entry.path))
        yield context.finding(
            entry,
            f"{shown(entry.path)} has to be {least} or more; DeepSpeed "
            + ("divides by it" if divides else f"takes {shown_value(value)} without a check"),
            severity=Severity.ERROR if divides else None,
            effect=Effect.REJECTED if divides else None,
        )
