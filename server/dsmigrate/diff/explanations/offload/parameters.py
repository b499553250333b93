"""Where the shards of the weights lie at stage 3."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.zero._shared import moved, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.editing.derived.sizes import bytes_text
from dsmigrate.languages import mark, say
from dsmigrate.memory import Place, What, usage

_THREE = '{"train_batch_size": 8, "zero_optimization": {"stage": 3'
_HOST = _THREE + ', "offload_param": {"device": "cpu"}}}'
_PLACES = {
    "none": mark("Shards of the weights stay on the GPU between uses"),
    "cpu": mark("Shards of the weights lie in host memory and come to the GPU for each use"),
    "nvme": mark(
        "Shards of the weights lie on NVMe, but for those that `max_in_cpu` keeps in host memory, and are read for use"
    ),
}
_BRIEFS = {"none": mark("weights on the GPU"), "cpu": mark("weights in host memory"), "nvme": mark("weights on NVMe")}


@explanation(
    "DF502",
    "parameter-offload",
    summary="The shards of the weights move between GPU, host memory and NVMe at stage 3.",
    why=(
        "Each use of a module then begins with a copy to the GPU, where the shards are gathered. It moves weights"
        " alone: gradients, master weights and optimizer states go with `offload_optimizer`. Below stage 3 the key"
        " does nothing. To NVMe weights go through a page-locked buffer with room for the largest sub-group of all"
        " ranks together: a smaller `sub_group_size` makes it smaller."
    ),
    source=(
        "deepspeed/runtime/zero/stage3.py:_create_fp16_partitions_with_defragmentation",
        "deepspeed/runtime/zero/partition_parameters.py:_partition_param",
        "deepspeed/runtime/swap_tensor/partitioned_param_swapper.py:reserve_partitioned_swap_space",
    ),
    examples=(
        Example(
            _THREE + "}}",
            _HOST,
            "Shards of the weights lie in host memory and come to the GPU for each use; previously they stayed there",
            paths=("zero_optimization.offload_param.device",),
            effects=(Effect.MEMORY, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(_HOST, _THREE + "}}", "Shards of the weights stay on the GPU between uses"),
        Example(
            _HOST,
            _THREE + ', "offload_param": {"device": "nvme", "nvme_path": "/local"}}}',
            "Shards of the weights lie on NVMe, but for those that `max_in_cpu` keeps in host memory, and are read for"
            " use; previously they lay in host memory",
        ),
        Example(
            '{"bf16": {"enabled": true}, "train_batch_size": 8, "zero_optimization": {"stage": 3}}',
            '{"bf16": {"enabled": true}, "train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param":'
            ' {"device": "nvme", "nvme_path": "/local"}}}',
            "Shards of the weights lie on NVMe, but for those that `max_in_cpu` keeps in host memory, and are read for"
            " use; updated weights leave through a page-locked buffer of about 14.9 GiB on each rank",
            world_size=8,
            parameters=70_000_000_000,
        ),
        Example(_THREE + "}}", _THREE + ', "offload_param": {"device": "none"}}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield where shards lie now."""
    move = moved(pair, "offload_param.device")
    if move is None or not {str(move.after), str(move.before)} <= _PLACES.keys():
        return
    after, before = str(move.after), "none" if move.begins else str(move.before)
    was = {"none": say("; previously they stayed there"), "cpu": say("; previously they lay in host memory")}.get(
        before, ""
    )
    was = "" if after == "none" or move.begins or (after == "nvme" and before == "none") else was
    through = _exit(pair) if after == "nvme" else ""
    yield told(pair, move, f"{say(_PLACES[after])}{was}{through}", brief=_BRIEFS[after])


def _exit(pair: Pair) -> str:
    """Return what updated weights leave through on their way to NVMe, where parameters and GPUs are known."""
    found = usage(pair.new.context)
    parts = found.select(Place.HOST, (What.STAGING,)) if found is not None else ()
    sizes = [
        part.bytes
        for part in parts
        if part.bytes and part.says == say("a buffer for updated weights on their way to NVMe")
    ]
    if not sizes:
        return ""
    return say(
        "; updated weights leave through a page-locked buffer of about {sum} on each rank", sum=bytes_text(sum(sizes))
    )
