"""The sub-groups in which stage 3 updates a shard (deepspeed/runtime/zero/stage3.py:_create_fp16_sub_groups)."""

from __future__ import annotations

from dsmigrate.memory.model import Over
from dsmigrate.memory.scene import ZERO, Scene


def count(scene: Scene) -> int | None:
    """Return the number of sub-groups of a rank; None without a model. Without its tensors it is a guess.

    A sub-group ends with the tensor that brings it to ``sub_group_size`` elements. One parameter group is assumed.
    """
    shard, most = scene.count(Over.SHARD), scene.number("sub_group_size")
    if shard is None or scene.model is None or scene.ranks is None:
        return None
    if most >= shard:
        return 1
    if not scene.model.tensors:
        return -(-shard // max(most, 1))
    found = held = 0
    for elements in scene.model.tensors:
        held += -(-elements // scene.ranks)
        if held >= most:
            found, held = found + 1, 0
    return found + bool(held)


def most_in_one(scene: Scene) -> int:
    """Return about the elements of the largest sub-group; at most, without a model."""
    shard, most = scene.count(Over.SHARD), scene.number("sub_group_size")
    return most if shard is None else min(shard, most)


def portion_on_gpu(scene: Scene) -> float:
    """Return the portion of the shard that ``offload_optimizer.ratio`` leaves on the GPU: the first sub-groups.

    Without a model it is ``1 - ratio``; with one, as many whole sub-groups as that comes to, down to none.
    """
    if not scene.is_partial:
        return 0.0
    ratio = scene.context.number(f"{ZERO}.offload_optimizer.ratio")
    stay = 1 - float(1 if ratio is None else ratio)
    groups = count(scene)
    return stay if groups is None else int(stay * groups) / groups
