"""The memory that a config takes on one rank."""

from __future__ import annotations

from dsmigrate.editing.derived.sizes import LARGEST
from dsmigrate.memory.gathering import kept
from dsmigrate.memory.model import Model, Usage
from dsmigrate.memory.scene import Scene, mics_group, model_of, ranks_of
from dsmigrate.memory.sharded import sharded
from dsmigrate.memory.stages import bf16_optimizer, partitioned, unsharded
from dsmigrate.memory.subgroups import count
from dsmigrate.rules.context import Context

_MOST_RANKS = 10**7


def sub_groups(context: Context, model: Model | None = None, ranks: int | None = None) -> int | None:
    """Return how many sub-groups a rank updates one by one at stage 3, about; None where that is not known."""
    scene = scene_of(context, model, ranks)
    return None if scene is None or scene.stage < 3 else count(scene)


def kept_gathered(context: Context, model: Model | None = None, ranks: int | None = None) -> int | None:
    """Return about how many elements stage 3 keeps gathered from forward to backward, in a model large enough."""
    scene = scene_of(context, model, ranks)
    return None if scene is None or scene.stage < 3 else kept(scene)


def usage(context: Context, model: Model | None = None, ranks: int | None = None) -> Usage | None:
    """Return the memory of one rank by parts; None where the ZeRO stage is not known.

    ``model`` and ``ranks``, the GPUs that share model states, default to the facts beside the file: ``parameters`` and
    ``world_size``. Without them parts that are shares have a formula and no bytes. Mixtures of experts and the
    selective optimizer of ZenFlow are not looked at.
    """
    scene = scene_of(context, model, ranks)
    if scene is None:
        return None
    if not scene.stage:
        parts = unsharded(scene)
    elif scene.is_bf16_optimizer:
        parts = bf16_optimizer(scene)
    else:
        parts = partitioned(scene) if scene.stage < 3 else sharded(scene)
    return Usage(scene.stage, tuple(parts), scene.assumes, sums=scene.steps != 1)


def scene_of(context: Context, model: Model | None = None, ranks: int | None = None) -> Scene | None:
    """Return what the figures of a config depend on; None where the stage is not known."""
    if context.stage is None:
        return None
    found = model_of(context) if model is None else model
    if found is not None and not 0 < found.parameters <= LARGEST:
        found = None
    share = ranks_of(context) if ranks is None else ranks
    if not share or not 0 < share <= _MOST_RANKS:
        return Scene(context, context.stage, found, None)
    group = min(mics_group(context) or share, share)
    return Scene(context, context.stage, found, group, share // group)
