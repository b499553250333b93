"""DS944: batch keys beside elastic training."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import MICRO, STEPS, TOTAL, is_elastic
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_IGNORE = "elasticity.ignore_non_elastic_batch_info"


@rule(
    "DS944",
    "elastic-batch-keys",
    summary="Batch keys beside an enabled `elasticity`, which computes them.",
    why="Elastic training chose the batch sizes itself and raised an `ElasticityConfigError` when the file gave one of "
    "them too, unless `ignore_non_elastic_batch_info` was on: then they were overwritten. DeepSpeed 0.19.8 rejects the "
    "section.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/config.py:DeepSpeedConfig",),
    until="0.19.8",
    keys=("elasticity.enabled", _IGNORE),
    examples=(
        Example(
            '{«"train_batch_size"»: 8, "elasticity": {"enabled": true, "max_train_batch_size": 8, '
            '"micro_batch_sizes": [1, 2]}}',
            fixed='{"train_batch_size": 8, "elasticity": {"enabled": true, "max_train_batch_size": 8, '
            '"micro_batch_sizes": [1, 2], "ignore_non_elastic_batch_info": true}}',
            version="0.19.6",
            accepted=None,  # an older release
        ),
        Example(
            '{"train_batch_size": 8, "elasticity": {"enabled": true, "max_train_batch_size": 8, '
            '"micro_batch_sizes": [1, 2], "ignore_non_elastic_batch_info": true}}',
            version="0.9.5",
            accepted=None,  # the same
        ),
        Example('{"train_batch_size": 8, "elasticity": {"enabled": false}}', version="0.14.5", accepted=None),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the first batch key."""
    entries = [entry for path in (TOTAL, MICRO, STEPS) if (entry := context.entry(path)) is not None]
    if not entries or not is_elastic(context) or context.is_on(_IGNORE) is not False:
        return
    yield context.finding(
        entries[0],
        say(
            "DeepSpeed rejects {entries_path} beside `elasticity`, which computes the batch sizes; "
            "`{rpartition}` lets it overwrite them",
            entries_path=shown(entries[0].path),
            rpartition=_IGNORE.rpartition(".")[2],
        ),
        part="key",
        fixes=[context.insert(tuple(_IGNORE.split(".")), True, say("Add `{ignore}`", ignore=_IGNORE), safe=False)],
        related=[("elasticity.enabled", say("on"))],
    )
