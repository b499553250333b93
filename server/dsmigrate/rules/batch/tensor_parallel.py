"""DS226: AutoTP ranks count as data-parallel ones in the batch equation."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import TOTAL, degree, given, text
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_SIZE = "tensor_parallel.autotp_size"


@rule(
    "DS226",
    "tensor-parallel-batch",
    summary="With `tensor_parallel.autotp_size`, `train_batch_size` counts each sample once per tensor-parallel rank.",
    why="Without an `mpu` the batch equation takes every process for a data-parallel rank, although the ranks of "
    "one AutoTP group are fed the same samples. The number of different samples per step is `train_batch_size / "
    "autotp_size`.",
    severity=Severity.INFO,
    effect=Effect.MISREAD,
    source=(
        "deepspeed/runtime/config.py:DeepSpeedConfig",
        "deepspeed/runtime/tensor_parallel/config.py:TPTrainingConfig",
    ),
    keys=(_SIZE, TOTAL),
    examples=(
        Example('{"train_batch_size": «32», "tensor_parallel": {"autotp_size": 4}}\n', accepted=None),  # four processes
        Example('{"train_batch_size": 32, "tensor_parallel": {"autotp_size": 1}}\n'),
        Example(
            '{"train_micro_batch_size_per_gpu": 4, "tensor_parallel": {"autotp_size": 4}}\n', accepted=None
        ),  # four
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at a total batch beside AutoTP."""
    size, total = degree(context, _SIZE), context.number(TOTAL)
    if given(context, _SIZE) is None or size is None or size < 2 or total is None or total <= 0:
        return
    yield context.finding(
        TOTAL,
        say(
            "the {size} ranks of an AutoTP group count {size} times here: without an `mpu` a step sees "
            "{number} different samples, not {total}",
            size=size,
            number=text(total / size),
            total=text(total),
        ),
        related=[(_SIZE, say("{size} ranks share one model copy", size=size))],
    )
