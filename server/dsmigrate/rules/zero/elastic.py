"""DS420: elastic checkpoints at stage 3."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZERO, switched_on

_KEY = f"{ZERO}.elastic_checkpoint"


@rule(
    "DS420",
    "elastic-at-stage-3",
    summary="`elastic_checkpoint` at stage 3, which saves as usual and loads more slowly.",
    why="Stage 3 has no elastic checkpoints: states are saved as without the key, but on loading every rank reads "
    "the files of "
    "all ranks. Later releases also warn when the config is read. To resume on another number of GPUs there are "
    "universal "
    "checkpoints.",
    severity=Severity.WARNING,
    effect=Effect.SLOW,
    source=(
        "deepspeed/runtime/zero/config.py:elastic_checkpoint_deprecated",
        "deepspeed/runtime/engine.py:_get_all_zero_checkpoint_state_dicts",
    ),
    keys=(_KEY, "checkpoint.load_universal"),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 3, "elastic_checkpoint": «true»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 3}}\n',
        ),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 1, "elastic_checkpoint": true}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding where stage 3 meets the switch."""
    entry = switched_on(context, _KEY)
    if entry is None or context.stage != 3:
        return
    yield context.finding(
        entry,
        say("stage 3 saves no elastic checkpoints; every rank then reads the files of all ranks when it loads one"),
        fixes=[context.remove(entry, say("Remove {key}", key=shown(_KEY)), safe=True)],
    )
