"""How gradients are reduced: scattered, all-reduced, or by one reduce for each owner."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import ZERO, switched, told, volumes
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import mark, say
from dsmigrate.memory import Collective, Traffic

_SCATTER = "reduce_scatter"
_TOGETHER = "use_multi_rank_bucket_allreduce"


@explanation(
    "DF408",
    "gradient-reduction",
    summary="Gradients are reduced by another kind of collective, or by the same one under another switch.",
    why=(
        "Stage 3 reduce-scatters, Ψ elements per backward, or all-reduces, 2Ψ. Stage 1 and 2 all-reduce a bucket and"
        " keep their slices, with `reduce_scatter` too; only with `use_multi_rank_bucket_allreduce` off does each owner"
        " get its slices by a reduce of its own, Ψ in many messages."
    ),
    source=(
        "deepspeed/runtime/zero/stage_1_and_2.py:average_tensor",
        "deepspeed/runtime/zero/stage3.py:__reduce_and_partition_ipg_grads",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "reduce_scatter": false}}',
            "Gradients are reduced by all-reduce instead of reduce-scatter: 2Ψ elements per backward instead of Ψ",
            paths=("zero_optimization.reduce_scatter",),
            effects=(Effect.COMMUNICATION, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "use_multi_rank_bucket_allreduce": false}}',
            "Gradients are reduced by one reduce for each owner instead of all-reduce: Ψ elements per backward instead"
            " of 2Ψ, in more messages",
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_scatter": false}}',
            "Gradients are all-reduced either way, the same bytes; they are divided by the number of GPUs after the sum"
            " instead of before, and no longer copied for it",
            effects=(Effect.SPEED,),
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1, "reduce_scatter": false}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1, "reduce_scatter": true}}',
            "Gradients are all-reduced either way, the same bytes; they are divided by the number of GPUs before the"
            " sum instead of after, and copied for it",
        ),
        Example(
            '{"train_batch_size": 8}', '{"train_batch_size": 8, "zero_optimization": {"reduce_scatter": false}}', ""
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield the collective that reduces gradients now, at one stage."""
    found = volumes(pair)
    if found is None or found[0].stage != found[1].stage:
        return
    moves = [item for name in (_SCATTER, _TOGETHER) for item in switched(pair, name)]
    if not moves:
        return
    before, after = (_kind(one) for one in found)
    move, on = moves[0]
    more = tuple(other.path for other, _ in moves[1:])
    if before is None or after is None:
        message = say("Changes nothing that is known without the number of GPUs")
    elif before is not after:
        many = say(", in more messages") if after is Collective.REDUCE else ""
        message = say(
            "Gradients are reduced by {names} instead of {names_2}: {volume} elements per backward instead "
            "of {volume_2}{many}",
            names=say(_NAMES[after]),
            names_2=say(_NAMES[before]),
            volume=_VOLUME[after],
            volume_2=_VOLUME[before],
            many=many,
        )
        yield told(pair, move, message, brief=say("gradients by {names}", names=say(_NAMES[after])), more=more)
        return
    elif move.path == f"{ZERO}.{_SCATTER}" and found[1].stage in {1, 2} and after is Collective.ALL_REDUCE:
        message = say(
            "Gradients are all-reduced either way, the same bytes; they are divided by the number of GPUs {what}",
            what=say("before the sum instead of after, and copied for it") if on else say(_AFTER),
        )
        yield told(pair, move, message, effects=(Effect.SPEED,), more=more)
        return
    else:
        message = say("Does nothing here: gradients are reduced by {names} either way", names=say(_NAMES[after]))
    yield told(pair, move, message, effects=(Effect.NONE,), severity=Severity.NONE, more=more)


_AFTER = mark("after the sum instead of before, and no longer copied for it")
_NAMES = {
    Collective.ALL_REDUCE: "all-reduce",
    Collective.REDUCE: mark("one reduce for each owner"),
    Collective.REDUCE_SCATTER: "reduce-scatter",
    Collective.ALL_TO_ALL: mark("quantized all-to-all"),
}
_VOLUME = {
    Collective.ALL_REDUCE: "2Ψ",
    Collective.REDUCE: "Ψ",
    Collective.REDUCE_SCATTER: "Ψ",
    Collective.ALL_TO_ALL: "Ψ",
}


def _kind(one: Traffic) -> Collective | None:
    return next((part.collective for part in one.transfers if part.what == "gradients"), None)
