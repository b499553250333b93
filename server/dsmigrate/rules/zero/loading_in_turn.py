"""DS447: ranks that load one after the other where that cannot work."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZERO, switched_on

_KEY = f"{ZERO}.pipeline_loading_checkpoint"
_UNIVERSAL = "checkpoint.load_universal"


@rule(
    "DS447",
    "loading-in-turn",
    summary="`pipeline_loading_checkpoint` below stage 3, or with a universal checkpoint.",
    why="Loading a checkpoint asserts stage 3. With a universal checkpoint the rank that has loaded never tells the "
    "next one, "
    "and the others wait forever.",
    severity=Severity.WARNING,
    effect=Effect.CRASH,
    source=("deepspeed/runtime/engine.py:_load_zero_checkpoint", "deepspeed/runtime/zero/stage3.py:load_state_dict"),
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, "zero_optimization": {"stage": 2, "pipeline_loading_checkpoint": «true»}}\n',
            fixed='{"train_batch_size": 1, "zero_optimization": {"stage": 2}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "checkpoint": {"load_universal": true}, "zero_optimization": '
            '{"stage": 3, "pipeline_loading_checkpoint": «true»}}\n',
            fixed='{"train_batch_size": 1, "checkpoint": {"load_universal": true}, "zero_optimization": {"stage": '
            "3}}\n",
        ),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 3, "pipeline_loading_checkpoint": true}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding where a checkpoint could not be loaded this way."""
    entry = switched_on(context, _KEY)
    if entry is None:
        return
    if context.stage in {1, 2}:
        told = say("at stage {stage} loading a checkpoint fails with this key: it is for stage 3", stage=context.stage)
    elif context.stage == 3 and switched_on(context, _UNIVERSAL) is not None:
        told = say("with {universal} the second rank waits forever for its turn to load", universal=shown(_UNIVERSAL))
    else:
        return
    yield context.finding(entry, told, fixes=[context.remove(entry, say("Remove {key}", key=shown(_KEY)), safe=True)])
