"""DS439: secondary shards that have no place, or do not divide the ranks."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import PARAM_DEVICE, ZERO, given

_KEY = f"{ZERO}.zero_hpz_partition_size"


@rule(
    "DS439",
    "secondary-shards",
    summary="`zero_hpz_partition_size` that does not divide the number of ranks, or meets parameters on NVMe.",
    why="The ranks are cut into groups of this size, each with a second copy of the parameter shards. The groups "
    "must come out "
    "even (a size above the number of ranks is cut down to it), and shards that live on NVMe have no place for the "
    "copy.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/utils/groups.py:_create_zero_param_parallel_group",
        "deepspeed/runtime/zero/partition_parameters.py:_partition_param_sec",
    ),
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 12, "zero_optimization": {"stage": 3, "zero_hpz_partition_size": «8»}}\n',
            facts=Facts(world_size=12),
            accepted=None,  # takes twelve processes
        ),
        Example(
            '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": '
            '{"stage": 3, "zero_hpz_partition_size": «8», "offload_param": {"device": "nvme", "nvme_path": '
            '"/local"}}}\n',
            accepted=None,  # swapping needs a compiled extension
        ),
        Example(
            '{"train_batch_size": 16, "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}}\n',
            facts=Facts(world_size=16),
            accepted=None,  # sixteen processes
        ),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the group size."""
    size, world = context.number(_KEY), context.facts.world_size
    if context.stage != 3 or given(context, _KEY) is None or size is None or size <= 1:
        return
    if context.device("offload_param") == "nvme":
        yield context.finding(
            _KEY,
            say(
                "groups of {size} keep a second copy of the shards, for which parameters on NVMe leave no place",
                size=int(size),
            ),
            effect=Effect.CRASH,
            related=[(PARAM_DEVICE, say("parameters are on NVMe"))],
        )
    elif world is not None and world % min(size, world):
        yield context.finding(
            _KEY,
            say(
                "{world} ranks cannot be cut into groups of {size}: {key} must divide them",
                world=world,
                size=int(size),
                key=shown(_KEY),
            ),
        )
