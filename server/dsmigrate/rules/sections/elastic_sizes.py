"""DS945: sizes of elastic training that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import is_elastic, text
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.sections._elastic import (
    LEAST,
    MICRO,
    MOST,
    NODES,
    PARALLEL,
    Elastic,
    elastic,
    elastic_micro_batches,
)


@rule(
    "DS945",
    "elastic-sizes",
    summary="Sizes of an enabled `elasticity` with which no batch can be computed.",
    why="The micro-batches had to be whole numbers above 0, none above `max_train_batch_size` (divided by the "
    "data-parallel ranks of a node in version 0.2), `min_gpus` at most `max_gpus`, and `model_parallel_size` above 1 "
    "needed version 0.2 and a divisor of `num_gpus_per_node`. Reading the config failed otherwise.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/elasticity/config.py:ElasticityConfig",
        "deepspeed/elasticity/elasticity.py:compute_elastic_config",
    ),
    until="0.19.8",
    keys=(MICRO, LEAST, PARALLEL),
    examples=(
        Example(
            '{"elasticity": {"enabled": true, "max_train_batch_size": 4, "micro_batch_sizes": «[2, 8]»}}',
            version="0.19.6",
            accepted=False,
        ),
        Example(
            '{"elasticity": {"enabled": true, "max_train_batch_size": 4, "micro_batch_sizes": «[]»}}',
            version="0.9.5",
            accepted=False,
        ),
        Example(
            '{"elasticity": {"enabled": true, "max_train_batch_size": 4, "micro_batch_sizes": [2], "min_gpus": «8», '
            '"max_gpus": 4}}',
            version="0.9.5",
            accepted=False,
        ),
        Example(
            '{"elasticity": {"enabled": true, "max_train_batch_size": 64, "micro_batch_sizes": [2], '
            '"model_parallel_size": «3», "num_gpus_per_node": 8}}',
            version="0.14.5",
            accepted=False,
        ),
        Example(
            '{"elasticity": {"enabled": true, "max_train_batch_size": 64, "micro_batch_sizes": [2, 8], '
            '"model_parallel_size": 2, "num_gpus_per_node": 8}}',
            version="0.14.5",
            accepted=None,  # the same
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for the first thing that is wrong."""
    settings = elastic(context)
    wrong = _by_itself(context) if settings is None else wrong_size(settings)
    if wrong is not None:
        path, message = wrong
        yield context.finding(path, say("{message}: DeepSpeed cannot compute a batch", message=message))


def _by_itself(context: Context) -> tuple[str, str] | None:
    """Return what is wrong whatever the other settings are, some of which are no numbers."""
    micro = elastic_micro_batches(context)
    wrong = None if micro is None else _wrong_micro_batch(micro)
    least, most = context.number(LEAST), context.number(MOST)
    if wrong is not None or not is_elastic(context) or least is None or most is None:
        return wrong
    return _wrong_range(least, most)


def _wrong_micro_batch(micro: Sequence[int]) -> tuple[str, str] | None:
    if not micro:
        return MICRO, say("no micro-batch to choose from")
    return (MICRO, say("{min} is no micro-batch", min=min(micro))) if min(micro) < 1 else None


def _wrong_range(least: float, most: float) -> tuple[str, str] | None:
    return (
        (LEAST, say("{least} is more than `max_gpus`, {most}", least=text(least), most=text(most)))
        if least > most
        else None
    )


def wrong_size(settings: Elastic) -> tuple[str, str] | None:
    """Return the path of a size that nothing can be computed with, and what is wrong; None when all is well."""
    wrong = _wrong_micro_batch(settings.micro) or _wrong_range(settings.least, settings.most)
    if wrong is not None:
        return wrong
    if settings.parallel > 1 and settings.version != NODES:
        return PARALLEL, say(
            "model parallelism takes version {nodes}, not {settings_version}",
            nodes=NODES,
            settings_version=settings.version,
        )
    if settings.version == NODES and settings.per_node % settings.parallel:
        return PARALLEL, say(
            "{parallel} does not divide `num_gpus_per_node`, {per_node}",
            parallel=text(settings.parallel),
            per_node=text(settings.per_node),
        )
    if max(settings.micro) > settings.limit:
        return MICRO, say(
            "{max} is more than {limit}, the most a batch may have", max=max(settings.micro), limit=text(settings.limit)
        )
    return None
