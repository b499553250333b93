"""DS220: sequence-parallel sizes that break the batch arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import DATA, SEQUENCE, degree, divides, is_one_rank
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS220",
    "sequence-parallel-size",
    summary="`sequence_parallel_size` that does not divide the number of ranks.",
    why="The world size of the batch equation is the number of ranks divided by `sequence_parallel_size`, as a "
    "float and unchecked: 0 is a `ZeroDivisionError`, a negative number makes the batch negative, 3 on 8 ranks "
    "gives a world size of 2.667 and a fractional batch. With `data_parallel_size` beside it `initialize` builds a "
    "device mesh, and the product has to be the number of ranks. Before 0.19.3 an error in the division was silently "
    "ignored, and DeepSpeed counted one rank; before 0.17.0 only the mesh was made.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/config.py:DeepSpeedConfig", "deepspeed/__init__.py:initialize"),
    since="0.15.0",
    keys=(SEQUENCE, DATA),
    examples=(
        Example(
            '{"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": «0»}\n',
            fixed='{"train_micro_batch_size_per_gpu": 1}\n',
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": «3»}\n',
            facts=Facts(world_size=8),
            accepted=None,  # takes eight processes
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": «2», "data_parallel_size": 2}\n',
            facts=Facts(world_size=8),
            accepted=None,  # takes eight processes
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 2, "data_parallel_size": 4}\n',
            facts=Facts(world_size=8),
            accepted=None,  # takes eight processes
        ),
        Example(
            '{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": «0»}\n',
            fixed='{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1}\n',
            version="0.18.9",
            accepted=None,  # the judge is the newest release
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 3}\n',
            facts=Facts(world_size=8),
            version="0.16.9",
            accepted=None,  # the same
        ),
        Example('{"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 2}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a size below 1, one that does not divide the ranks, or a mesh of another size."""
    value, ranks = context.value(SEQUENCE), context.facts.world_size
    if divides(context) and isinstance(value, (int, float)) and value <= 0:
        one = is_one_rank(context)
        yield context.finding(
            SEQUENCE,
            say("{value} ranks cannot share a sequence: DeepSpeed ", value=value)
            + (say("counts one rank instead") if one else say("divides the number of ranks by it and fails")),
            severity=Severity.WARNING if one else None,
            effect=Effect.MISREAD if one else None,
            fixes=[context.remove(SEQUENCE, say("Remove `{sequence}`", sequence=SEQUENCE), safe=False)],
        )
    size, data = degree(context, SEQUENCE), degree(context, DATA)
    if size is None or ranks is None:
        return
    if data is not None and size * data != ranks:
        yield context.finding(
            SEQUENCE,
            say(
                "{size} × `{data}` {data_2} is {number}, but there are {ranks} ranks: the device mesh cannot be built",
                size=size,
                data=DATA,
                data_2=data,
                number=size * data,
                ranks=ranks,
            ),
            related=[(DATA, say("{data} is {data_2}", data=DATA, data_2=data))],
        )
    elif data is None and ranks % size and divides(context):
        yield context.finding(
            SEQUENCE,
            say(
                "{size} does not divide {ranks} ranks: DeepSpeed counts with a world size of {number}",
                size=size,
                ranks=ranks,
                number=f"{ranks / size:.4g}",
            ),
            severity=Severity.WARNING,
            effect=Effect.MISREAD,
        )
