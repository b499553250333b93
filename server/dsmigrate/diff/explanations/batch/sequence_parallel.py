"""The ranks that share a sequence, and thereby the ranks that count in the batch equation."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.effects import effects_of
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.editing.derived.batch import WORLD
from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import DATA, MICRO, SEQUENCE, STEPS, data_ranks, degree, text


@explanation(
    "DF208",
    "sequence-parallel-share",
    summary="Another number of ranks shares a sequence, and so another number counts as data-parallel.",
    why=(
        "`sequence_parallel_size` divides the number of ranks in the batch equation. It splits no sequence: groups come"
        " from a Ulysses `mpu`, from the mesh that it makes together with `data_parallel_size`, or from the AutoSP"
        " pass. Without any of those all ranks go on averaging their gradients, and the real batch is larger than the"
        " stated one by this factor."
    ),
    source=(
        "deepspeed/runtime/config.py:DeepSpeedConfig",
        "deepspeed/__init__.py:initialize",
        "deepspeed/utils/groups.py:_get_sequence_parallel_world_size",
    ),
    examples=(
        Example(
            '{"train_micro_batch_size_per_gpu": 4}',
            '{"train_micro_batch_size_per_gpu": 4, "sequence_parallel_size": 2}',
            "A sequence belongs to 2 ranks now: DeepSpeed counts world size / 2 data-parallel ranks instead of world"
            " size",
            paths=(SEQUENCE,),
            effects=(Effect.NUMERICS, Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_batch_size": 32, "sequence_parallel_size": 4}',
            '{"train_batch_size": 32}',
            "A sequence belongs to one rank again: DeepSpeed counts 8 data-parallel ranks instead of 2; the"
            " micro-batch it computes is 4 instead of 16",
            world_size=8,
        ),
        Example(
            '{"train_batch_size": 32, "sequence_parallel_size": 2, "data_parallel_size": 2}',
            '{"train_batch_size": 32, "sequence_parallel_size": 2, "data_parallel_size": 4}',
            "The mesh has 4 data-parallel groups of ranks instead of 2",
            paths=(DATA,),
        ),
        Example(
            '{"train_batch_size": 32}',
            '{"train_batch_size": 32, "data_parallel_size": 4}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield how many ranks count now, and what follows for the batch."""
    paths = tuple(path for path in (SEQUENCE, DATA) if pair.change(path) is not None)
    if not paths:
        return
    before, after = (degree(side.context, SEQUENCE) or 1 for side in (pair.old, pair.new))
    if before == after:
        message = say(
            "The mesh has {ranks} data-parallel groups of ranks instead of {ranks_2}",
            ranks=_ranks(pair.new),
            ranks_2=_ranks(pair.old),
        )
    else:
        begin = (
            say("A sequence belongs to {after} ranks now", after=after)
            if after > 1
            else say("A sequence belongs to one rank again")
        )
        message = say(
            "{begin}: DeepSpeed counts {ranks} data-parallel ranks instead of {ranks_2}{computed}",
            begin=begin,
            ranks=_ranks(pair.new),
            ranks_2=_ranks(pair.old),
            computed=_computed(pair),
        )
    yield pair.says(
        *paths,
        effects=effects_of(pair, SEQUENCE),
        severity=Severity.WARNING,
        message=message,
        advice=say("The key alone splits no sequence: the script, a mesh or the AutoSP pass has to")
        if after > before
        else "",
        brief=say("{after} ranks to a sequence", after=after) if before != after else say("another device mesh"),
    )


def _ranks(side: Side) -> str:
    ranks, shared = data_ranks(side.context), degree(side.context, SEQUENCE) or 1
    if ranks is not None:
        return text(ranks)
    return f"{say(WORLD)} / {shared}" if shared > 1 else say(WORLD)


def _computed(pair: Pair) -> str:
    """Return what becomes of a batch key that the file leaves out, where both sides compute it."""
    for path, name in ((MICRO, say("micro-batch")), (STEPS, say("accumulation"))):
        old, new = pair.numbers(path)
        if path not in pair.new.given and old is not None and new is not None and old != new:
            return say("; the {name} it computes is {new} instead of {old}", name=name, new=text(new), old=text(old))
    return ""
