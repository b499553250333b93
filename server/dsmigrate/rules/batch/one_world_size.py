"""DS212: three pinned batch keys, which fit one number of GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import MICRO, SEQUENCE, STEPS, TOTAL, batch, data_ranks, degree, text
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS212",
    "batch-fits-one-world-size",
    summary="All three batch keys are pinned, so the file fits one number of GPUs only.",
    why="DeepSpeed asserts `train_batch_size = train_micro_batch_size_per_gpu × gradient_accumulation_steps × world "
    "size`. With three numbers there is one world size that fits; on any other one, and without a launcher (world "
    "size 1), the config is rejected. Two of the keys fit every number of GPUs that divides the total.",
    severity=Severity.HINT,
    effect=Effect.RISKY,
    source=("deepspeed/runtime/config.py:_batch_assertion", "https://github.com/deepspeedai/DeepSpeed/issues/6914"),
    keys=(TOTAL,),
    pains=(1,),
    examples=(
        Example(
            '{"train_batch_size": «32», "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}\n',
            fixed='{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}\n',
        ),
        Example(
            '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}\n',
            facts=Facts(world_size=4),
        ),
        Example('{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a hint when the world size is unknown and three numbers fit one."""
    keys = batch(context)
    if keys is None or data_ranks(context) is not None or not isinstance(keys.total, (int, float)):
        return
    if not keys.is_pinned or not (context.has(MICRO) and context.has(STEPS)) or degree(context, SEQUENCE):
        return
    ranks = Fraction(keys.total) / Fraction(math.prod(keys.pinned))
    if ranks.denominator != 1:
        return  # fits none, which DS210 tells
    parts = " × ".join(text(value) for value in keys.pinned)
    yield context.finding(
        TOTAL,
        say(
            "{total} = {parts} × {ranks} fits {ranks} data-parallel rank{en_s} only; DeepSpeed rejects the "
            "file on any other number",
            total=text(keys.total),
            parts=parts,
            ranks=ranks,
            en_s="" if ranks == 1 else "s",
        ),
        fixes=[
            context.remove(TOTAL, say("Remove `{total}`, which follows from the other two", total=TOTAL), safe=False)
        ],
    )
