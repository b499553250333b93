"""Groups of GPUs that gather weights among themselves: hpZ, and MiCS of older releases."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import moved, of_weights, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.precision import WIDTHS, precision
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.languages import say
from dsmigrate.memory.formula import number

_BF16 = '"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3'


@explanation(
    "DF421",
    "hierarchical-shards",
    summary="Each GPU keeps a second shard of the weights, so that most gathers stay within a group of GPUs.",
    why=(
        "The first gather of a step goes over all GPUs. What is released afterwards leaves a second shard behind, one"
        " part of the group's size, and every later gather of the step takes that, inside the group. The update makes"
        " it stale, and it is dropped. Gradients and optimizer states stay sharded over all GPUs."
    ),
    source=(
        "deepspeed/runtime/zero/partition_parameters.py:_partition_param_sec",
        "deepspeed/runtime/zero/stage3.py:invalidate_secondary_tensor",
    ),
    examples=(
        Example(
            f"{{{_BF16}}}}}",
            f'{{{_BF16}, "zero_hpz_partition_size": 8}}}}',
            "After the first gather of a step weights are gathered within groups of 8 GPUs, from a second shard of 2Ψ/8"
            " bytes",
            paths=("zero_optimization.zero_hpz_partition_size",),
            effects=(Effect.MEMORY, Effect.COMMUNICATION),
            severity=Severity.INFO,
        ),
        Example(
            f'{{{_BF16}, "zero_hpz_partition_size": 8}}}}',
            f"{{{_BF16}}}}}",
            "Weights are always gathered over all GPUs, and the second shard of 2Ψ/8 bytes is gone",
        ),
        Example(f"{{{_BF16}}}}}", f'{{{_BF16}, "zero_hpz_partition_size": 1}}}}', ""),
    ),
)
def explain_groups(pair: Pair) -> Iterator[Explained]:
    """Yield who gathers from whom, and what the second shard takes."""
    move = moved(pair, "zero_hpz_partition_size")
    before, after = (whole(move.before), whole(move.after)) if move is not None else (None, None)
    if move is None or before is None or after is None or max(before, 1) == max(after, 1):
        return
    width = number(WIDTHS[precision(pair.new.context).weights or "bf16"])
    total = pair.new.context.facts.parameters

    def takes(group: int) -> str:
        return say(
            "{width}Ψ/{group} bytes{more}",
            width=width,
            group=group,
            more=f", {of_weights(pair.new, total // group)}" if total else "",
        )

    if after > 1:
        place = say(" instead of {before} GPUs", before=before) if before > 1 and not move.begins else ""
        message = say(
            "After the first gather of a step weights are gathered within groups of {after} GPUs{place}, "
            "from a second shard of {takes}",
            after=after,
            place=place,
            takes=takes(after),
        )
    else:
        message = say(
            "Weights are always gathered over all GPUs, and the second shard of {takes} is gone", takes=takes(before)
        )
    yield told(
        pair,
        move,
        message,
        brief=say("weights gathered within {after} GPUs", after=after) if after > 1 else say("gathers over all GPUs"),
    )


@explanation(
    "DF422",
    "mics",
    summary="MiCS, up to 0.19.6: everything is sharded over a group of GPUs and replicated between groups, or not.",
    why=(
        "With MiCS a GPU held one part of the group's size of weights, gradients and optimizer states instead of one"
        " part of all GPUs. Gathers stayed in the group, and gradients were all-reduced between groups at the end of a"
        " step. -1 is off. 0.19.7 refuses the key."
    ),
    source=("deepspeed/runtime/zero/mics.py:MiCS_Optimizer",),
    examples=(
        Example(
            f"{{{_BF16}}}}}",
            f'{{{_BF16}, "mics_shard_size": 8}}}}',
            "Weights, gradients and optimizer states are sharded over groups of 8 GPUs and replicated between groups;"
            " weights are gathered within a group",
            paths=("zero_optimization.mics_shard_size",),
            effects=(Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED, Effect.CHECKPOINT),
            severity=Severity.WARNING,
            old_version="0.16.0",
            new_version="0.16.0",
        ),
        Example(
            f"{{{_BF16}}}}}", f'{{{_BF16}, "mics_shard_size": -1}}}}', "", old_version="0.16.0", new_version="0.16.0"
        ),
    ),
)
def explain_mics(pair: Pair) -> Iterator[Explained]:
    """Yield what the group shares."""
    move = moved(pair, "mics_shard_size")
    if move is None or not all(isinstance(one, (int, float)) for one in (move.before, move.after)):
        return
    if not pair.new.reads(move.path) or not pair.old.reads(move.path):
        return
    count = whole(move.after)
    if not count and not whole(move.before):
        return
    message = (
        say(
            "Weights, gradients and optimizer states are sharded over groups of {count} GPUs and replicated "
            "between groups; weights are gathered within a group",
            count=count,
        )
        if count
        else say("Weights, gradients and optimizer states are sharded over all GPUs, no longer over groups")
    )
    effects = (Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED, Effect.CHECKPOINT)
    brief = say("shards over {count} GPUs", count=count) if count else say("shards over all GPUs")
    yield told(pair, move, message, effects=effects, severity=Severity.WARNING, brief=brief)
