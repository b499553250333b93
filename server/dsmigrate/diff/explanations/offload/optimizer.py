"""Where the optimizer works: on the GPU, on the host, or from NVMe."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import Move, moved, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.optimizer import built_class
from dsmigrate.languages import say

_TWO = '{"train_batch_size": 8, "zero_optimization": {"stage": 2'
_THREE = '{"train_batch_size": 8, "zero_optimization": {"stage": 3'


@explanation(
    "DF501",
    "optimizer-offload",
    summary="Optimizer states move between GPU, host memory and NVMe, and the update with them.",
    why=(
        "Master weights, the gradients of the step and the moments of a rank's shard lie where the update runs. On the"
        " host it takes time in proportion to the shard and the copies of gradients down and weights up. NVMe keeps"
        " them on disk and streams one sub-group after the other through host buffers; below stage 3 it is the same as"
        " the host. The numbers stay the same up to rounding."
    ),
    source=(
        "deepspeed/runtime/zero/stage3.py:_configure_offloading",
        "deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer",
        "deepspeed/runtime/swap_tensor/partitioned_optimizer_swapper.py:PartitionedOptimizerSwapper",
    ),
    examples=(
        Example(
            _TWO + "}}",
            _TWO + ', "offload_optimizer": {"device": "cpu"}}}',
            "Master weights and optimizer states of each shard move to host memory, and the update runs on the CPU",
            paths=("zero_optimization.offload_optimizer.device",),
            effects=(Effect.MEMORY, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            '{"optimizer": {"type": "AdamW", "params": {}}, "train_batch_size": 8, "zero_optimization": {"stage": 3}}',
            '{"optimizer": {"type": "AdamW", "params": {}}, "train_batch_size": 8, "zero_optimization": {"stage": 3,'
            ' "offload_optimizer": {"device": "cpu"}}}',
            "Master weights and optimizer states of each shard move to host memory, and the update runs on the CPU, in"
            " `DeepSpeedCPUAdam`",
        ),
        Example(
            _THREE + ', "offload_optimizer": {"device": "cpu"}}}',
            _THREE + ', "offload_optimizer": {"device": "nvme", "nvme_path": "/local"}}}',
            "Master weights and optimizer states of each shard move from host memory to NVMe, and are read and written"
            " in every step",
        ),
        Example(
            _TWO + ', "offload_optimizer": {"device": "nvme", "nvme_path": "/local"}}}',
            _TWO + ', "offload_optimizer": {"device": "cpu", "nvme_path": "/local"}}}',
            "Does the same: below stage 3 `nvme` keeps optimizer states in host memory as well",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(
            _THREE + ', "offload_optimizer": {"device": "cpu"}}}',
            _THREE + "}}",
            "Master weights and optimizer states of each shard move back to the GPU, and the update runs there",
        ),
        Example(_TWO + "}}", _TWO + ', "offload_optimizer": {"device": "none"}}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield where states lie now."""
    move = moved(pair, "offload_optimizer.device")
    if move is None:
        return
    before, after = _place(move, pair.old.context.stage, new=False), _place(move, pair.new.context.stage, new=True)
    if before is None or after is None:
        return
    states = say("Master weights and optimizer states of each shard")
    if before == after:
        message = say("Does the same: below stage 3 `nvme` keeps optimizer states in host memory as well")
        yield told(pair, move, message, effects=(Effect.NONE,), severity=Severity.NONE)
    elif after == "none":
        message = say("{states} move back to the GPU, and the update runs there{by}", states=states, by=_by(pair))
        yield told(pair, move, message, brief=say("optimizer on the GPU"))
    elif after == "nvme":
        away = say(" from host memory") if before == "cpu" else ""
        message = say("{states} move{away} to NVMe, and are read and written in every step", states=states, away=away)
        yield told(pair, move, message, brief=say("optimizer states on NVMe"))
    elif before == "nvme":
        yield told(
            pair,
            move,
            say("{states} stay in host memory, no longer on NVMe", states=states),
            brief=say("optimizer states off NVMe"),
        )
    else:
        message = say("{states} move to host memory, and the update runs on the CPU{by}", states=states, by=_by(pair))
        yield told(pair, move, message, brief=say("optimizer on the CPU"))


def _place(move: Move, stage: int | None, *, new: bool) -> str | None:
    """Return where states lie on a side: NVMe is for stage 3, and nothing is offloaded at stage 0."""
    device = move.after if new else move.before
    if not stage or (move.begins and not new):
        return "none" if stage is not None else None
    if not isinstance(device, str) or device not in {"none", "cpu", "nvme"}:
        return None
    return "cpu" if device == "nvme" and stage < 3 else device


def _by(pair: Pair) -> str:
    """Return the class that updates now, where the config names an optimizer and it is another one."""
    facts = pair.new.context.type_of("optimizer")
    name = built_class(pair.new.context, facts) if facts is not None else ""
    return say(", in `{name}`", name=name) if name else ""
