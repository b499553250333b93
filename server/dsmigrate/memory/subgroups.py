"""The sub-groups in which stage 3 updates a shard (deepspeed/runtime/zero/stage3.py:_create_fp16_sub_groups)."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.memory.model import Over
from dsmigrate.memory.scene import ZERO, Scene


def count(scene: Scene) -> int | None:
    """Return the number of sub-groups of a rank; None without a model. Without its tensors it is a guess."""
    shard, most = scene.count(Over.SHARD), scene.number("sub_group_size")
    if shard is None:
        return None
    known = _groups(scene)
    return len(known) if known else -(-shard // max(most, 1))


def most_in_one(scene: Scene) -> int:
    """Return the elements of the largest sub-group; about, without the tensors, and at most, without a model."""
    shard, most = scene.count(Over.SHARD), scene.number("sub_group_size")
    if shard is None:
        return most
    return max((own for own, _ in _groups(scene)), default=min(shard, most))


def whole_of_largest(scene: Scene) -> int | None:
    """Return the elements that the tensors of the largest sub-group have on all ranks; None without a model."""
    if scene.model is None or scene.ranks is None:
        return None
    known = _groups(scene)
    return max(known)[1] if known else min(scene.model.parameters, most_in_one(scene) * scene.ranks)


def portion_on_gpu(scene: Scene) -> float:
    """Return the portion of the shard that ``offload_optimizer.ratio`` leaves on the GPU: the first sub-groups.

    Without a model it is ``1 - ratio``; with one, as many whole sub-groups as that comes to, down to none.
    """
    if not scene.is_partial:
        return 0.0
    ratio = scene.context.number(f"{ZERO}.offload_optimizer.ratio")
    stay = 1 - float(1 if ratio is None else ratio)
    groups, known = count(scene), [own for own, _ in _groups(scene)]
    if groups is None:
        return stay
    return sum(known[: int(stay * groups)]) / sum(known) if known else int(stay * groups) / groups


def _groups(scene: Scene) -> list[tuple[int, int]]:
    """Return the sub-groups as elements of the shard and of whole tensors; none where the tensors are not known.

    A sub-group ends with the tensor that brings it to ``sub_group_size`` elements. One parameter group is assumed.
    """
    shard, most = scene.count(Over.SHARD), scene.number("sub_group_size")
    if scene.model is None or not scene.model.tensors or scene.ranks is None or shard is None:
        return []
    return [(shard, scene.model.parameters)] if most >= shard else list(_cut(scene.model.tensors, scene.ranks, most))


def _cut(tensors: tuple[int, ...], ranks: int, most: int) -> Iterator[tuple[int, int]]:
    own = whole = 0
    for elements in tensors:
        own, whole = own + -(-elements // ranks), whole + elements
        if own >= most:
            yield own, whole
            own = whole = 0
    if own:
        yield own, whole
