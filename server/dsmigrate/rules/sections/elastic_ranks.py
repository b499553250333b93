"""DS946: a number of ranks that elastic training is not for."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import SEQUENCE, data_ranks, text
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.sections._elastic import CAP, MICRO, elastic, fitting
from dsmigrate.rules.sections.elastic_sizes import wrong_size

_SHOWN = 12


@rule(
    "DS946",
    "elastic-world-size",
    summary="A number of ranks that the batch of elastic training cannot be divided over.",
    why="Elastic training chose the batch that divides over the most numbers of GPUs and raised "
    "`ElasticityIncompatibleWorldSize` on any other number. Version 0.2 made an exception while a single model fits a "
    "GPU: it took a batch for the ranks that there are, if `max_train_batch_size` had room for one.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/elasticity/elasticity.py:compute_elastic_config", "deepspeed/runtime/config.py:DeepSpeedConfig"),
    until="0.19.8",
    keys=(CAP, MICRO),
    examples=(
        Example(
            '{"elasticity": {"enabled": true, "version": 0.1, "max_train_batch_size": «2», '
            '"micro_batch_sizes": [1, 2]}}',
            version="0.19.6",
            facts=Facts(world_size=4),
            accepted=False,
        ),
        Example(
            '{"elasticity": {"enabled": true, "max_train_batch_size": «2», "micro_batch_sizes": [1, 2]}}',
            version="0.19.6",
            facts=Facts(world_size=4),
            accepted=False,
        ),
        Example(
            '{"elasticity": {"enabled": true, "max_train_batch_size": «12», "micro_batch_sizes": [8], "min_gpus": 5}}',
            version="0.9.5",
            accepted=False,
        ),
        Example(
            '{"elasticity": {"enabled": true, "max_train_batch_size": 20, "micro_batch_sizes": [1, 2]}}',
            version="0.9.5",
            facts=Facts(world_size=5),
            accepted=None,  # the same
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding when the known number of ranks is not among those that fit."""
    settings = elastic(context)
    if settings is None or wrong_size(settings) is not None:
        return
    hopeless = fitting(settings, None) == []
    ranks = None if hopeless else data_ranks(context)
    counts = fitting(settings, None if ranks is None else max(1, int(ranks)))
    if counts is None or ranks in counts or (ranks is None and counts):
        return
    listed = say(", ").join(map(str, counts[:_SHOWN])) + (" …" if len(counts) > _SHOWN else "")
    yield context.finding(
        SEQUENCE if ranks is not None and ranks.denominator != 1 else CAP,
        say("DeepSpeed computes no batch for {what} ranks", what=say("any number of") if ranks is None else text(ranks))
        + (say("; it fits {listed}", listed=listed) if counts else ""),
        related=[(MICRO, say("the micro-batches to choose from"))],
    )
