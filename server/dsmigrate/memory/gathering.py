"""Which parameters of stage 3 are whole on a GPU, and for how long."""

from __future__ import annotations

from dsmigrate.memory.scene import Scene


def persistent(scene: Scene) -> int:
    """Return the elements of the tensors that stay gathered; 0 where the tensors are not known.

    deepspeed/runtime/zero/parameter_offload.py:mark_persistent_parameters
    """
    most = scene.number("stage3_param_persistence_threshold")
    together = scene.number("stage3_model_persistence_threshold")
    found = 0
    for elements in scene.model.everything if scene.model is not None else ():
        if elements <= most and elements + found <= together:
            found += elements
    return found


def kept(scene: Scene) -> int:
    """Return about how many elements stay gathered from forward to backward, in a model that is large enough.

    A parameter stays if less than ``stage3_max_reuse_distance`` elements lie between its two uses, which at the turn
    counts the layers behind it twice; what the prefetcher looks over stays as well
    (deepspeed/runtime/zero/partitioned_param_coordinator.py:PartitionedParameterCoordinator).
    """
    ahead = 1 if scene.is_on("stage3_allgather_sequential") else scene.number("stage3_prefetch_bucket_size")
    ahead = min(ahead, scene.number("stage3_max_live_parameters"))
    return max(scene.number("stage3_max_reuse_distance") // 2, ahead)


def live(scene: Scene) -> int:
    """Return about how many elements are gathered at the turn from forward to backward, small tensors left aside."""
    if scene.model is None:
        return kept(scene)
    largest = max(scene.model.everything, default=0)
    return min(scene.model.elements - persistent(scene), max(kept(scene), largest))
