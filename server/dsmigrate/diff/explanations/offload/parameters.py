"""Where the shards of the weights lie at stage 3."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import moved, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation

_THREE = '{"train_batch_size": 8, "zero_optimization": {"stage": 3'
_HOST = _THREE + ', "offload_param": {"device": "cpu"}}}'
_PLACES = {
    "none": "Shards of the weights stay on the GPU between uses",
    "cpu": "Shards of the weights lie in host memory and come to the GPU for each use",
    "nvme": "Shards of the weights lie on NVMe, but for those that `max_in_cpu` keeps in host memory, and are read for use",
}
_BRIEFS = {"none": "weights on the GPU", "cpu": "weights in host memory", "nvme": "weights on NVMe"}


@explanation(
    "DF502",
    "parameter-offload",
    summary="The shards of the weights move between GPU, host memory and NVMe at stage 3.",
    why=(
        "Each use of a module then begins with a copy to the GPU, where the shards are gathered. It moves weights alone:"
        " gradients, master weights and optimizer states go with `offload_optimizer`. Below stage 3 the key does nothing."
    ),
    source=(
        "deepspeed/runtime/zero/stage3.py:_create_fp16_partitions_with_defragmentation",
        "deepspeed/runtime/zero/partition_parameters.py:_partition_param",
    ),
    examples=(
        Example(
            _THREE + "}}",
            _HOST,
            "Shards of the weights lie in host memory and come to the GPU for each use; before they stayed there",
            paths=("zero_optimization.offload_param.device",),
            effects=(Effect.MEMORY, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(_HOST, _THREE + "}}", "Shards of the weights stay on the GPU between uses"),
        Example(
            _HOST,
            _THREE + ', "offload_param": {"device": "nvme", "nvme_path": "/local"}}}',
            "Shards of the weights lie on NVMe, but for those that `max_in_cpu` keeps in host memory, and are read for"
            " use; before they lay in host memory",
        ),
        Example(_THREE + "}}", _THREE + ', "offload_param": {"device": "none"}}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield where shards lie now."""
    move = moved(pair, "offload_param.device")
    if move is None or move.after not in _PLACES or move.before not in _PLACES:
        return
    after, before = str(move.after), "none" if move.begins else str(move.before)
    was = {"none": "; before they stayed there", "cpu": "; before they lay in host memory"}.get(before, "")
    was = "" if after == "none" or move.begins or (after == "nvme" and before == "none") else was
    yield told(pair, move, f"{_PLACES[after]}{was}", brief=_BRIEFS[after])
