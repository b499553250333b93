"""The sub-groups that the optimizer of stage 3 works through."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import both_sizes, elements, moved, tail, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.languages import say
from dsmigrate.memory import sub_groups

_BF16 = '"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3'

_NO_LIMIT = 10**11
"""Elements that no shard has."""


@explanation(
    "DF415",
    "sub-groups",
    summary="The optimizer of stage 3 works through its shard in more or fewer pieces.",
    why=(
        "The step takes fp32 gradients of one sub-group at a time, swaps one at a time to and from NVMe, and divides"
        " the shard by them between CPU and GPU. The optimizer has a parameter group for each, so that a checkpoint"
        " with another number of them ends in a ValueError. The numbers stay the same."
    ),
    source=(
        "deepspeed/runtime/zero/stage3.py:_create_fp16_sub_groups",
        "deepspeed/runtime/zero/stage3.py:_prepare_fp32_grad_for_sub_group",
        "deepspeed/runtime/zero/stage3.py:_set_fp32_optimizer_param_groups",
    ),
    examples=(
        Example(
            f"{{{_BF16}}}}}",
            f'{{{_BF16}, "sub_group_size": 1e8}}}}',
            "The optimizer updates 100 M elements of the shard at a time instead of 1 G: 381 MiB instead of 3.73 GiB"
            " in fp32; optimizer states in checkpoints load only where the number of sub-groups stays",
            paths=("zero_optimization.sub_group_size",),
            effects=(Effect.MEMORY, Effect.SPEED, Effect.CHECKPOINT),
            severity=Severity.WARNING,
        ),
        Example(
            f"{{{_BF16}}}}}",
            f'{{{_BF16}, "sub_group_size": 1e8}}}}',
            "The optimizer updates 100 M elements of the shard at a time instead of 1 G: 381 MiB instead of 3.73 GiB"
            " in fp32, about 9 sub-groups instead of 1; optimizer states in checkpoints no longer load",
            severity=Severity.BREAKING,
            world_size=8,
            parameters=7_000_000_000,
        ),
        Example(
            f"{{{_BF16}}}}}",
            f'{{{_BF16}, "sub_group_size": 1e12}}}}',
            "Does nothing here: the shard of each GPU is one sub-group either way",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
            world_size=8,
            parameters=7_000_000_000,
        ),
        Example(f"{{{_BF16}}}}}", f'{{{_BF16}, "sub_group_size": 1e9}}}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield how much the optimizer takes at a time, and what becomes of checkpoints."""
    move = moved(pair, "sub_group_size")
    if move is None:
        return
    before, after = whole(move.before), whole(move.after)
    if before is None or after is None:
        return
    old, new = sub_groups(pair.old.context), sub_groups(pair.new.context)
    if old == new == 1:
        message = say("Does nothing here: the shard of each GPU is one sub-group either way")
        yield told(pair, move, message, effects=(Effect.NONE,), severity=Severity.NONE)
        return
    known = not move.begins and old is not None and new is not None and old != new
    severity, end = Severity.INFO, ""
    if known:
        severity, end = Severity.BREAKING, say("; optimizer states in checkpoints no longer load")
    elif not move.begins:
        severity = Severity.WARNING
        end = say("; optimizer states in checkpoints load only where the number of sub-groups stays")
    takes, took = both_sizes(pair, move) if after < _NO_LIMIT else ("", "")
    size = (
        say("{after} elements of the shard at a time", after=elements(after))
        if after < _NO_LIMIT
        else say("the whole shard at once")
    )
    groups = say(", about {new} sub-groups instead of {old}", new=new, old=old) if known else ""
    yield told(
        pair,
        move,
        say(
            "The optimizer updates {size}{tail}{groups}{end}",
            size=size,
            tail=tail(move, elements(before), takes, took),
            groups=groups,
            end=end,
        ),
        severity=severity,
        advice=say("Resume with the old number, or from the weights alone") if known else "",
        brief=say("another number of sub-groups")
        if known
        else say("sub-groups of {after} elements", after=elements(after)),
    )
