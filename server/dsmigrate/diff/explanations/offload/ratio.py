"""A part of the optimizer that stays on the GPU."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import moved, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say
from dsmigrate.memory import sub_groups

_HOST = (
    '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "sub_group_size": 1e8,'
    ' "offload_optimizer": {"device": "cpu"'
)


@explanation(
    "DF504",
    "partial-offload",
    summary="More or fewer sub-groups of the optimizer stay on the GPU.",
    why=(
        "The first `int((1 - ratio) * count)` sub-groups of a rank are updated on the GPU, by a `torch.optim.AdamW`"
        " that copies learning rate, betas and decay of the first parameter group when it is made: a scheduler that"
        " moves the rate later moves it for the CPU alone. A rank with one sub-group offloads everything for any ratio"
        " above 0."
    ),
    source=(
        "deepspeed/runtime/zero/stage3.py:_create_fp32_partitions",
        "deepspeed/runtime/zero/stage3.py:_optimizer_step",
    ),
    examples=(
        Example(
            _HOST + "}}}",
            _HOST + ', "ratio": 0.5}}}',
            "Of the sub-groups about 50 % are updated on the GPU instead of none, with the learning rate that the"
            " first parameter group has at the start, whatever a scheduler does",
            paths=("zero_optimization.offload_optimizer.ratio",),
            effects=(Effect.NUMERICS, Effect.MEMORY, Effect.SPEED),
            severity=Severity.WARNING,
        ),
        Example(
            _HOST + "}}}",
            _HOST + ', "ratio": 0.5}}}',
            "Of 9 sub-groups 4 are updated on the GPU instead of none",
            world_size=8,
            parameters=7_000_000_000,
        ),
        Example(
            _HOST + "}}}",
            _HOST + ', "ratio": 0.5}}}',
            "Does nothing here: with 1 sub-group on each GPU everything is offloaded either way",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
            world_size=8,
            parameters=500_000_000,
        ),
        Example(_HOST + ', "ratio": 0.5}}}', _HOST + "}}}", "All sub-groups are updated on the CPU"),
        Example(_HOST + "}}}", _HOST + ', "ratio": 1}}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield how much of the update runs where."""
    move = moved(pair, "offload_optimizer.ratio")
    if move is None or not all(_is_share(one) for one in (move.before, move.after)):
        return
    groups = sub_groups(pair.new.context)
    before, after = (_stay(one, groups) for one in (move.before, move.after))
    if groups is not None and before == after:
        counted = say("1 sub-group") if groups == 1 else say("{groups} sub-groups", groups=groups)
        what = say("everything is offloaded") if not after else say("{after} stay on the GPU", after=int(after))
        message = say("Does nothing here: with {counted} on each GPU {what} either way", counted=counted, what=what)
        yield told(pair, move, message, effects=(Effect.NONE,), severity=Severity.NONE)
        return
    if not after:
        message = say("All sub-groups are updated on the CPU, none on the GPU any more")
    else:
        of = say("the sub-groups about") if groups is None else say("{groups} sub-groups", groups=groups)
        now, was = (_said(one, groups) for one in (move.after, move.before))
        message = say(
            "Of {of} {now} are updated on the GPU instead of {was}, with the learning rate that the first "
            "parameter group has at the start, whatever a scheduler does",
            of=of,
            now=now,
            was=was,
        )
    effects = (Effect.NUMERICS, Effect.MEMORY, Effect.SPEED)
    brief = say("optimizer partly on the GPU") if after else say("optimizer wholly on the CPU")
    yield told(pair, move, message, effects=effects, severity=Severity.WARNING, brief=brief)


def _is_share(value: object) -> bool:
    return isinstance(value, (int, float)) and 0 <= value <= 1


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 1.0


def _said(ratio: object, groups: int | None) -> str:
    """Return how many sub-groups stay on the GPU: "4", "50 %", "none"."""
    stay = _stay(ratio, groups)
    return say("none") if not stay else f"{round(100 * stay)} %" if groups is None else str(int(stay))


def _stay(ratio: object, groups: int | None) -> float:
    """Return how many sub-groups stay on the GPU; the share where their number is not known."""
    stay = 1 - _number(ratio)
    return stay if groups is None else int(stay * groups)
