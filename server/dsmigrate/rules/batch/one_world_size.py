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
    "size 1), the config is rejected; so does `zero.Init`, as used by `from_pretrained` at stage 3, which counts one "
    "process until the process group is there. Two of the keys fit every number of GPUs that divides the total.",
    severity=Severity.INFO,
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
        Example(
            '{"train_batch_size": «16», "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8, '
            '"zero_optimization": {"stage": 3}}\n',
            fixed='{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8, '
            '"zero_optimization": {"stage": 3}}\n',
            facts=Facts(world_size=2),
        ),
        Example('{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding when three numbers fit one world size, and that is unknown, or not what ``zero.Init`` counts."""
    keys = batch(context)
    early = context.stage == 3 and (data_ranks(context) or 0) > 1
    if keys is None or (data_ranks(context) is not None and not early) or not isinstance(keys.total, (int, float)):
        return
    if not keys.is_pinned or not (context.has(MICRO) and context.has(STEPS)) or degree(context, SEQUENCE):
        return
    ranks = Fraction(keys.total) / Fraction(math.prod(keys.pinned))
    if ranks.denominator != 1 or (early and ranks != data_ranks(context)):
        return  # fits none, or another one, which DS210 and DS211 tell
    alone = context.stage == 3 and ranks > 1
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
        )
        + (say("; `zero.Init` counts 1 unless the process group is there before it") if alone else ""),
        severity=Severity.HINT if early else None,
        fixes=[
            context.remove(TOTAL, say("Remove `{total}`, which follows from the other two", total=TOTAL), safe=False)
        ],
    )
