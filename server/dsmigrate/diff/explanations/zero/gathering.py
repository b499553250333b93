"""Stage 3: what is gathered ahead, how long it stays, and how it is fetched."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import (
    Move,
    elements,
    moved,
    of_weights,
    sends,
    switched,
    tail,
    told,
)
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.force import PREFETCH, in_force
from dsmigrate.editing.derived.sizes import whole
from dsmigrate.languages import say
from dsmigrate.memory import kept_gathered

_BF16 = '"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3'
_COSTS = (Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED)


def _sized(pair: Pair, name: str) -> Iterator[tuple[Move, int]]:
    """Yield the move of a number of elements that acts now, with the number.

    One that ceased to act is told by itself.
    """
    move = moved(pair, name)
    count = whole(move.after) if move is not None else None
    if move is not None and count is not None and whole(move.before) is not None:
        yield move, count


@explanation(
    "DF410",
    "prefetch",
    summary="Stage 3 gathers more or fewer weights ahead of their use.",
    why=(
        "Gathering starts before a module runs, so that it need not wait. What is under way takes memory as whole"
        " tensors. Prefetching begins with the second forward, when the order of modules is known; the last tensor may"
        " exceed the number."
    ),
    source=("deepspeed/runtime/zero/partitioned_param_coordinator.py:PartitionedParameterCoordinator",),
    examples=(
        Example(
            f"{{{_BF16}}}}}",
            f'{{{_BF16}, "stage3_prefetch_bucket_size": 5e8}}}}',
            "About 500 M elements of weights are gathered ahead of their use instead of 50 M: 0.93 GiB in bf16 on each"
            " GPU",
            paths=("zero_optimization.stage3_prefetch_bucket_size",),
            effects=_COSTS,
            severity=Severity.INFO,
        ),
        Example(
            f"{{{_BF16}}}}}",
            f'{{{_BF16}, "stage3_prefetch_bucket_size": 0}}}}',
            "No weights are gathered ahead of their use any more (before: 50 M elements)",
        ),
        Example(
            f'{{{_BF16}, "stage3_allgather_sequential": true}}}}',
            f'{{{_BF16}, "stage3_allgather_sequential": true, "stage3_prefetch_bucket_size": 5e8}}}}',
            "Does nothing: `stage3_allgather_sequential` makes it one element",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(f"{{{_BF16}}}}}", f'{{{_BF16}, "prefetch_bucket_size": 5e7}}}}', ""),
    ),
)
def explain_prefetch(pair: Pair) -> Iterator[Explained]:
    """Yield how much is gathered ahead."""
    for move, count in _sized(pair, "stage3_prefetch_bucket_size"):
        if in_force(pair.new.context, PREFETCH) != count:
            message = say("Does nothing: `stage3_allgather_sequential` makes it one element")
            yield told(pair, move, message, effects=(Effect.NONE,), severity=Severity.NONE)
        elif not count:
            message = say(
                "No weights are gathered ahead of their use any more (before: {before} elements)",
                before=elements(move.before),
            )
            yield told(pair, move, message, brief=say("no prefetching"))
        else:
            end = tail(move, elements(move.before), of_weights(pair.new, count), where=say(" on each GPU"))
            message = say(
                "About {count} elements of weights are gathered ahead of their use{end}", count=elements(count), end=end
            )
            yield told(
                pair,
                move,
                message,
                brief=say(
                    "prefetching {before} → {count} elements", before=elements(move.before), count=elements(count)
                ),
            )


@explanation(
    "DF411",
    "live-parameters",
    summary="Stage 3 stops prefetching at more or fewer gathered elements.",
    why=(
        "The number only throttles the prefetcher, which looks ahead by what is left of it. It is no limit on memory:"
        " the running module is gathered whatever it says, and nothing is released because of it."
    ),
    source=("deepspeed/runtime/zero/partitioned_param_coordinator.py:PartitionedParameterCoordinator",),
    examples=(
        Example(
            f"{{{_BF16}}}}}",
            f'{{{_BF16}, "stage3_max_live_parameters": 3e8}}}}',
            "Prefetching, and nothing else, stops at 300 M gathered elements instead of 1 G: 572 MiB instead of 1.86"
            " GiB in bf16",
            paths=("zero_optimization.stage3_max_live_parameters",),
            effects=_COSTS,
            severity=Severity.INFO,
        ),
        Example(f"{{{_BF16}}}}}", f'{{{_BF16}, "stage3_max_live_parameters": 1e9}}}}', ""),
    ),
)
def explain_live(pair: Pair) -> Iterator[Explained]:
    """Yield where prefetching stops."""
    for move, count in _sized(pair, "stage3_max_live_parameters"):
        takes, took = of_weights(pair.new, count), of_weights(pair.new, whole(move.before) or 0)
        end = tail(move, elements(move.before), takes, took)
        message = say(
            "Prefetching, and nothing else, stops at {count} gathered elements{end}", count=elements(count), end=end
        )
        yield told(pair, move, message)


@explanation(
    "DF412",
    "reuse-distance",
    summary="Stage 3 keeps weights gathered over longer or shorter distances between two uses.",
    why=(
        "A tensor that is needed again within this many elements is not released. That bites at the turn from forward"
        " to backward, where about half as many elements stay gathered, and as many as are prefetched at least; a"
        " model below that stays gathered as a whole, and backward gathers nothing."
    ),
    source=("deepspeed/runtime/zero/partitioned_param_coordinator.py:release_sub_module",),
    examples=(
        Example(
            f"{{{_BF16}}}}}",
            f'{{{_BF16}, "stage3_max_reuse_distance": 1e8}}}}',
            "About 50 M elements stay gathered from forward to backward instead of 500 M: 95.4 MiB instead of 0.93"
            " GiB in bf16",
            paths=("zero_optimization.stage3_max_reuse_distance",),
            effects=_COSTS,
            severity=Severity.INFO,
        ),
        Example(
            f'{{{_BF16}}}, "gradient_accumulation_steps": 1, "train_micro_batch_size_per_gpu": 8}}',
            f'{{{_BF16}, "stage3_max_reuse_distance": 0, "stage3_prefetch_bucket_size": 0}},'
            ' "gradient_accumulation_steps": 1, "train_micro_batch_size_per_gpu": 8}',
            "Weights are released after each use; previously all weights stayed gathered from forward to backward,"
            " 572 MiB"
            " in bf16; each GPU sends about 1.47 GiB per step instead of 0.98 GiB",
            parameters=300_000_000,
            world_size=8,
        ),
        Example(
            f'{{{_BF16}, "stage3_max_reuse_distance": 1e7}}}}',
            f'{{{_BF16}, "stage3_max_reuse_distance": 0}}}}',
            "About 50 M elements stay gathered from forward to backward either way",
        ),
        Example(f"{{{_BF16}}}}}", f'{{{_BF16}, "max_reuse_distance": 1e9}}}}', ""),
    ),
)
def explain_reuse(pair: Pair) -> Iterator[Explained]:
    """Yield how much stays gathered at the turn, and what that spares to gather."""
    for move, count in _sized(pair, "stage3_max_reuse_distance"):
        parameters = pair.new.context.facts.parameters
        most = parameters or 10**30
        before = (whole(move.before) or 0) // 2 if move.begins else kept_gathered(pair.old.context) or 0
        after = kept_gathered(pair.new.context) or count // 2
        was, now = of_weights(pair.new, min(before, most)), of_weights(pair.new, min(after, most))
        end = tail(move, say("all") if before >= most else elements(before), now, was)
        if min(before, most) == min(after, most):
            message = say("{stay} from forward to backward either way", stay=_stay(after, most))
        elif after:
            message = say("{stay} from forward to backward{end}", stay=_stay(after, most), end=end)
        else:
            message = say(
                "Weights are released after each use; previously {stayed} from forward to backward, {was}",
                stayed=say("all weights stayed gathered")
                if before >= most
                else say("about {count} elements stayed gathered", count=elements(before)),
                was=was,
            )
        volume = sends(pair) if parameters else ""
        yield told(
            pair,
            move,
            say("{message}; {volume}", message=message, volume=volume) if volume else message,
            brief=say("{before} → {after} elements kept for backward", before=elements(before), after=elements(after)),
        )


def _stay(count: int, most: int) -> str:
    return (
        say("All weights stay gathered")
        if count >= most
        else say("About {count} elements stay gathered", count=elements(count))
    )


@explanation(
    "DF413",
    "persistent-parameters",
    summary="More or fewer small tensors stay gathered on every GPU at stage 3.",
    why=(
        "Gathering a bias costs more time than its memory is worth. Tensors up to the threshold stay whole and are"
        " gathered together after each step, as long as their sum stays within the bound for the model."
    ),
    source=("deepspeed/runtime/zero/parameter_offload.py:mark_persistent_parameters",),
    examples=(
        Example(
            f"{{{_BF16}}}}}",
            f'{{{_BF16}, "stage3_param_persistence_threshold": 1e6}}}}',
            "Tensors of up to 1 M elements stay gathered on every GPU instead of 100 k: 1.91 MiB in bf16 each",
            paths=("zero_optimization.stage3_param_persistence_threshold",),
            effects=_COSTS,
            severity=Severity.INFO,
        ),
        Example(
            f"{{{_BF16}}}}}",
            f'{{{_BF16}, "stage3_param_persistence_threshold": 0}}}}',
            "No tensor stays gathered on every GPU any more (before: those of up to 100 k elements)",
        ),
        Example(
            f"{{{_BF16}}}}}",
            f'{{{_BF16}, "stage3_model_persistence_threshold": 1e8}}}}',
            "Tensors that stay gathered on every GPU may have up to 100 M elements together, 191 MiB in bf16;"
            " previously"
            " any number",
        ),
        Example(f"{{{_BF16}}}}}", f'{{{_BF16}, "param_persistence_threshold": 100000}}}}', ""),
    ),
)
def explain_persistence(pair: Pair) -> Iterator[Explained]:
    """Yield which tensors stay, and how much they may be together."""
    for move, count in _sized(pair, "stage3_param_persistence_threshold"):
        if count:
            end = tail(move, elements(move.before), say("{of_weights} each", of_weights=of_weights(pair.new, count)))
            message = say(
                "Tensors of up to {count} elements stay gathered on every GPU{end}", count=elements(count), end=end
            )
        else:
            before = elements(move.before)
            message = say(
                "No tensor stays gathered on every GPU any more (before: those of up to {before} elements)",
                before=before,
            )
        yield told(pair, move, message, brief=say("tensors kept whole up to {count} elements", count=elements(count)))
    whole_move = moved(pair, "stage3_model_persistence_threshold")
    if whole_move is None or not isinstance(whole_move.after, (int, float)):
        return
    sum_of = whole(whole_move.after)
    takes = (
        say(
            "up to {sum_of} elements together, {of_weights}",
            sum_of=elements(sum_of),
            of_weights=of_weights(pair.new, sum_of),
        )
        if sum_of is not None
        else say("any sum")
    )
    was = elements(whole_move.before, alone=True)
    yield told(
        pair,
        whole_move,
        say("Tensors that stay gathered on every GPU may have {takes}; previously {was}", takes=takes, was=was),
    )


@explanation(
    "DF414",
    "fetching",
    summary="Stage 3 fetches weights tensor by tensor, by all-reduce, or in coalesced gathers.",
    why=(
        "A coalesced gather takes a flat buffer for all its tensors and copies them out of it. Gathering one by one"
        " does without, in more messages, and leaves one tensor under way. An all-reduce of zero-filled buffers needs"
        " no copies and moves twice the bytes."
    ),
    source=(
        "deepspeed/runtime/zero/partition_parameters.py:Init",
        "deepspeed/runtime/engine.py:_configure_zero_optimizer",
    ),
    examples=(
        Example(
            f"{{{_BF16}}}}}",
            f'{{{_BF16}, "stage3_allgather_sequential": true}}}}',
            "Each tensor is gathered on its own, without a flat buffer, and one ahead of its use instead of 50 M"
            " elements",
            paths=("zero_optimization.stage3_allgather_sequential",),
            effects=(Effect.COMMUNICATION, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            f"{{{_BF16}}}}}",
            f'{{{_BF16}, "stage3_use_all_reduce_for_fetch_params": true}}}}',
            "Weights are fetched by an all-reduce of zero-filled buffers instead of a gather: twice the bytes, no"
            " copies",
        ),
        Example(
            f'{{{_BF16}, "stage3_use_all_reduce_for_fetch_params": true}}}}',
            f"{{{_BF16}}}}}",
            "Weights are fetched by gathers instead of an all-reduce of zero-filled buffers: half the bytes, and"
            " copies",
        ),
        Example(f"{{{_BF16}}}}}", f'{{{_BF16}, "stage3_allgather_sequential": false}}}}', ""),
    ),
)
def explain_fetching(pair: Pair) -> Iterator[Explained]:
    """Yield how weights come to a GPU."""
    for move, on in switched(pair, "stage3_allgather_sequential"):
        side = pair.old if on else pair.new
        ahead = elements(in_force(side.context, PREFETCH)) if in_force(side.context, PREFETCH) != 1 else say("fewer")
        message = (
            say(
                "Each tensor is gathered on its own, without a flat buffer, and one ahead of its use instead of "
                "{ahead} elements",
                ahead=ahead,
            )
            if on
            else say(
                "Tensors are gathered together through a flat buffer, {ahead} elements ahead of their use", ahead=ahead
            )
        )
        yield told(pair, move, message)
    for move, on in switched(pair, "stage3_use_all_reduce_for_fetch_params"):
        message = (
            say(
                "Weights are fetched by an all-reduce of zero-filled buffers instead of a gather: twice the "
                "bytes, no copies"
            )
            if on
            else say(
                "Weights are fetched by gathers instead of an all-reduce of zero-filled buffers: half the "
                "bytes, and copies"
            )
        )
        yield told(pair, move, message)
