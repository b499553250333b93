"""DS210: a total batch that the other batch keys, or the ranks, do not divide."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import (
    MICRO,
    SEQUENCE,
    STEPS,
    TOTAL,
    Batch,
    batch,
    data_ranks,
    degree,
    divides,
    fits,
    text,
)
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Fix, Severity
from dsmigrate.rules.registry import rule

_TRIED = 256
"""Numbers of ranks that fractions are tried on."""


@rule(
    "DS210",
    "batch-does-not-fit",
    summary="`train_batch_size` is not micro-batch × accumulation × data-parallel ranks.",
    why="`train_batch_size = train_micro_batch_size_per_gpu × gradient_accumulation_steps × world size` is asserted "
    "when the config is read. A missing key is derived by floor division first, so a remainder fails here and a "
    "total that is too small becomes `Micro batch size per gpu: 0`. The world size counts data-parallel ranks: all "
    "processes, divided by `sequence_parallel_size`, unless an `mpu` or a pipeline grid says otherwise; it is 1 "
    "without a launcher.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/config.py:_batch_assertion", "https://github.com/deepspeedai/DeepSpeed/issues/6914"),
    keys=(TOTAL, MICRO, STEPS),
    pains=(1, 2),
    examples=(
        Example(
            """{
  "train_batch_size": «30»,
  "train_micro_batch_size_per_gpu": 4
}
""",
            fixed="""{
  "train_batch_size": 32,
  "train_micro_batch_size_per_gpu": 4
}
""",
        ),
        Example(
            '{"train_batch_size": «2», "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}\n',
            fixed='{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}\n',
        ),
        Example(
            '{"train_batch_size": «32», "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}\n',
            fixed='{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}\n',
            facts=Facts(world_size=8),
        ),
        Example(
            '{"train_batch_size": «2»}\n',
            fixed='{"train_batch_size": 4}\n',
            facts=Facts(world_size=4),
        ),
        Example('{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8}\n'),
        Example('{"train_batch_size": 10, "train_micro_batch_size_per_gpu": 2.5}\n'),
        Example(
            '{"train_batch_size": 24, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 1, '
            '"sequence_parallel_size": 1000}\n',
            accepted=None,  # takes three thousand processes
        ),
        Example('{"train_batch_size": «2.5», "gradient_accumulation_steps": 2.5}\n', accepted=False),
        Example(
            '{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "sequence_parallel_size": 2}\n',
            facts=Facts(world_size=8),
            accepted=None,  # takes eight processes
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding when the equation cannot hold: for the known ranks, or for any number of them."""
    keys = batch(context)
    if keys is None or not isinstance(keys.total, (int, float)):
        return
    product, total = Fraction(math.prod(keys.pinned)), Fraction(keys.total)
    ranks = data_ranks(context)
    if ranks is None:
        sequence = degree(context, SEQUENCE) if divides(context) else None
        if total * (sequence or 1) % product == 0 and _fits_somewhere(keys, sequence or 1):
            return
        message = _never(keys)
    elif fits(keys, ranks):
        return
    else:
        message = _not_here(keys, ranks)
    yield context.finding(
        TOTAL,
        message,
        fixes=_fixes(context, keys, product * (ranks or 1), ranks),
        related=[
            (path, say("{path} is {value}", path=path, value=text(value)))
            for path, value in ((MICRO, keys.micro), (STEPS, keys.steps))
            if isinstance(value, (int, float)) and context.has(path)
        ],
    )


def _fits_somewhere(keys: Batch, sequence: int) -> bool:
    """Return whether fractions, which DeepSpeed floors, fit some number of ranks; whole numbers that divide do."""
    given = [value for value in (keys.total, *keys.pinned) if isinstance(value, (int, float))]
    if sequence == 1 and all(value == int(value) for value in given):
        return True
    exact = Fraction(given[0]) / Fraction(math.prod(keys.pinned))
    tried = (Fraction(ranks, part) for ranks in range(1, _TRIED + 1) for part in (1, sequence))
    return any(fits(keys, ranks) for ranks in (exact, *tried))


def _never(keys: Batch) -> str:
    parts = " × ".join(text(value) for value in keys.pinned)
    return say(
        "{total} is no multiple of {parts}, so no number of GPUs fits: DeepSpeed needs total = "
        "micro-batch × accumulation × ranks",
        total=_shown(keys.total),
        parts=parts,
    )


def _not_here(keys: Batch, ranks: Fraction) -> str:
    count = say("{ranks} rank{en_s}", ranks=text(ranks), en_s="" if ranks == 1 else "s")
    if keys.is_pinned:
        product = math.prod(keys.pinned)
        fitting = Fraction(keys.total) / Fraction(product) if isinstance(keys.total, (int, float)) else ranks
        only = say("; it fits {fitting}", fitting=text(fitting)) if fitting.denominator == 1 else ""
        parts = " × ".join(text(value) for value in keys.pinned)
        return say(
            "{total} is not {parts} × {ranks} = {number} on {count}{only}",
            total=_shown(keys.total),
            parts=parts,
            ranks=text(ranks),
            number=text(product * ranks),
            count=count,
            only=only,
        )
    parts = " × ".join([*(text(value) for value in keys.pinned), count])
    return say(
        "{total} cannot be divided by {parts}, and DeepSpeed does not round", total=_shown(keys.total), parts=parts
    )


def _fixes(context: Context, keys: Batch, unit: Fraction, ranks: Fraction | None) -> list[Fix | None]:
    if len(keys.pinned) == 2 and context.has(MICRO) and context.has(STEPS):
        return [
            context.remove(TOTAL, say("Remove `{total}`, which follows from the other two", total=TOTAL), safe=False)
        ]
    if not isinstance(keys.total, (int, float)) or unit.denominator != 1:
        return []
    near = max(1, round(Fraction(keys.total) / unit)) * int(unit)
    if ranks is not None and not fits(replace(keys, total=near), ranks):
        return []  # DeepSpeed's floor divisions do not come out for a fraction of a micro-batch
    return [context.replace(TOTAL, near, say("Replace it by {near}", near=near), safe=False)]


def _shown(value: object) -> str:
    return f"`{TOTAL}` {text(value)}"
