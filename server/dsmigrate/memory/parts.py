"""Making parts: of a share of the model, or of a number of elements."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.memory.model import Over, Part, Place, Surety, What, When
from dsmigrate.memory.scene import Scene


def share(
    scene: Scene,
    what: What,
    width: float,
    over: Over,
    says: str,
    *,
    place: Place = Place.GPU,
    when: When = When.ALWAYS,
    surety: Surety = Surety.EXACT,
    pinned: bool = False,
    divisor: int = 1,
) -> Part:
    """Return a part whose elements are a share of the model, counted as far as model and ranks are known."""
    return Part(what, place, when, width, over, scene.count(over, divisor), says, surety, pinned, divisor)


def fixed(
    what: What,
    width: float,
    count: int,
    says: str,
    *,
    place: Place = Place.GPU,
    when: When = When.ALWAYS,
    surety: Surety = Surety.EXACT,
    pinned: bool = False,
    over: Over = Over.COUNT,
) -> Part:
    """Return a part with a number of elements of its own."""
    return Part(what, place, when, width, over, count, says, surety, pinned)


def frozen(scene: Scene) -> Iterator[Part]:
    """Yield the weights that do not train: whole below stage 3, which shards them as the others."""
    if scene.model is None or not scene.model.frozen:
        return
    width, count, device, own = scene.frozen_width, sum(scene.model.frozen), scene.parameter_device, Over.FROZEN
    if scene.stage < 3:
        yield fixed(What.PARAMETERS, width, count, say("frozen weights"), over=own)
        return
    place = {"none": Place.GPU, "cpu": Place.HOST}.get(device, Place.NVME)
    if scene.ranks is not None:
        shard = sum(math.ceil(size / scene.ranks) for size in scene.model.frozen)
        says = say("frozen weights of the shard")
        yield fixed(What.PARAMETERS, width, shard, says, place=place, pinned=place is Place.HOST, over=own)
    if scene.group > 1:
        where = Place.GPU if device == "none" else Place.HOST
        says = say("second shard of the frozen weights, within a group")
        part = math.ceil(count / scene.group)
        yield fixed(What.PARAMETERS, width, part, says, place=where, when=When.BACKWARD, over=own)
