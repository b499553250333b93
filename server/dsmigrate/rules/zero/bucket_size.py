"""DS425: a gradient bucket that is larger than the model, or than memory can spare."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN, Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import STAGE, ZERO, gigabytes, given, place

_KEY = f"{ZERO}.reduce_bucket_size"
_SHARE = 0.1
"""The part of a GPU's memory above which buckets are worth a word."""
_PART = 4
"""A model is suggested to be reduced in about this many buckets."""


@rule(
    "DS425",
    "large-reduce-bucket",
    summary="`reduce_bucket_size` holds more elements than the model, or a large part of the GPU's memory.",
    why="The number counts elements, not bytes. Each bucket is a buffer of 2 bytes per element in fp16 and bf16 and "
    "4 in fp32; "
    "`overlap_comm` doubles it at stage 1 and 2. The default of 5e8 is 1 GB in 16 bit, 2 GB with overlap. A bucket "
    "larger than "
    "the model is never full, so that nothing is reduced while backward runs.",
    severity=Severity.HINT,
    effect=Effect.MEMORY,
    source=(
        "deepspeed/runtime/zero/stage_1_and_2.py:setup_buckets",
        "deepspeed/runtime/zero/stage3.py:_setup_for_real_optimizer",
    ),
    keys=(_KEY, f"{ZERO}.overlap_comm"),
    pains=(29,),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2, "reduce_bucket_size": «5e8»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 2, "reduce_bucket_size": 31000000}}\n',
            facts=Facts(parameters=124_000_000),
        ),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": «2», "overlap_comm": '
            "true}}\n",
            facts=Facts(gpu_memory=16 * 2**30),
        ),
        Example(
            '{"train_batch_size": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "overlap_comm": '
            "true}}\n",
            facts=Facts(gpu_memory=16 * 2**30, parameters=7_000_000_000),
        ),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding where the facts beside the file say that the bucket is too large."""
    size = context.number(_KEY)
    if not context.stage or size is None or context.value(_KEY) is UNKNOWN:
        return
    where = place(context, _KEY, STAGE if context.has(STAGE) else ZERO)
    model, memory = context.facts.parameters, context.facts.gpu_memory
    if model is not None and size > model:
        fitting = max(model // _PART, 1)
        yield context.finding(
            where,
            say(
                "a bucket of {size} elements is never full: the model has {model}, so its gradients are reduced "
                "only after backward",
                size=int(size),
                model=model,
            ),
            fixes=[context.replace(_KEY, fitting, say("Use {fitting}", fitting=fitting), safe=False)]
            if given(context, _KEY)
            else [],
        )
        return
    wide = context.is_on("bf16.enabled") is False and context.is_on("fp16.enabled") is False
    buffers = 2 if context.stage < 3 and context.is_on(f"{ZERO}.overlap_comm") else 1
    taken = size * buffers * (4 if wide else 2)
    if memory is not None and taken > memory * _SHARE and context.is_on(f"{ZERO}.contiguous_gradients"):
        yield context.finding(
            where,
            say(
                "gradient buckets of {size} elements take {gigabytes} of this GPU's {gigabytes_2}",
                size=int(size),
                gigabytes=gigabytes(taken),
                gigabytes_2=gigabytes(memory),
            )
            + (say(", two of them because of `overlap_comm`") if buffers == 2 else ""),
            severity=Severity.INFO,
        )
