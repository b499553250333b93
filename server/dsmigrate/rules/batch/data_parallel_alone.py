"""DS222: `data_parallel_size` without its partner."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import DATA, SEQUENCE, given
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity, Tag
from dsmigrate.rules.registry import rule


@rule(
    "DS222",
    "data-parallel-size-alone",
    summary="`data_parallel_size` does nothing without `sequence_parallel_size`.",
    why="`initialize` reads the two keys together, to build a device mesh for sequence parallelism. Alone, "
    "`data_parallel_size` is not looked at: the number of data-parallel ranks follows from the launcher.",
    severity=Severity.WARNING,
    effect=Effect.IGNORED,
    source=("deepspeed/__init__.py:initialize",),
    keys=(DATA,),
    examples=(
        Example(
            '{"train_micro_batch_size_per_gpu": 1, «"data_parallel_size"»: 4}\n',
            fixed='{"train_micro_batch_size_per_gpu": 1}\n',
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 1, "data_parallel_size": 1, "sequence_parallel_size": 1}\n',
            accepted=None,  # takes more than one process
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for the key without its partner."""
    entry = given(context, DATA)
    if entry is not None and context.document.member_at((SEQUENCE,)) is None:
        yield context.finding(
            entry,
            say(
                "DeepSpeed reads `{data}` only beside `{sequence}`; the ranks come from the launcher",
                data=DATA,
                sequence=SEQUENCE,
            ),
            part="key",
            fixes=[context.remove(entry, say("Remove `{data}`", data=DATA), safe=True)],
            tags=[Tag.UNNECESSARY],
        )
