"""DS228: attention heads that sequence parallelism does not divide."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import SEQUENCE, degree
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, ModelFacts, Severity
from dsmigrate.rules.registry import rule

_MODEL = ModelFacts("config.json", (1000,), heads=12)


@rule(
    "DS228",
    "heads-not-divided",
    summary="`sequence_parallel_size` that does not divide the attention heads of the model.",
    why="Sequence parallelism gives every rank of a group an equal share of the heads during attention. "
    "`UlyssesSPAttentionHF` raises a ValueError for a number that the ranks do not divide. Told if the model is known.",
    severity=Severity.WARNING,
    effect=Effect.CRASH,
    source=("deepspeed/runtime/sequence_parallel/ulysses_sp.py:UlyssesSPAttentionHF",),
    since="0.17.1",
    keys=(SEQUENCE,),
    examples=(
        Example('{"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": «8»}\n', facts=Facts(model=_MODEL)),
        Example('{"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 4}\n', facts=Facts(model=_MODEL)),
        Example('{"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 8}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the size."""
    model, size = context.facts.model, degree(context, SEQUENCE)
    if model is None or not model.heads or not size or model.heads % size == 0 or not context.has(SEQUENCE):
        return
    yield context.finding(
        SEQUENCE,
        say(
            "{model} has {heads} attention heads, which {size} ranks do not divide: Ulysses attention stops",
            model=model.name,
            heads=model.heads,
            size=size,
        ),
    )
