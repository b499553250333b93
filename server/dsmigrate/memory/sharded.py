"""The parts of memory at stage 3 (deepspeed/runtime/zero/stage3.py:DeepSpeedZeroOptimizer_Stage3)."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.memory.gathering import live, persistent
from dsmigrate.memory.model import Over, Part, Place, Surety, What, When
from dsmigrate.memory.parts import fixed, frozen, share
from dsmigrate.memory.scene import Scene
from dsmigrate.memory.stages import bucket, copied
from dsmigrate.memory.subgroups import most_in_one, portion_on_gpu, whole_of_largest


def sharded(scene: Scene) -> Iterator[Part]:
    """Yield the parts of stage 3: shards of everything, the bucket, and what is gathered while it is used."""
    yield from _parameters(scene)
    yield from frozen(scene)
    yield from _optimizer(scene)
    yield from bucket(scene, When.ALWAYS)
    yield _reduced(scene)
    small = persistent(scene)
    if small:
        yield fixed(What.GATHERED, scene.weights, small, say("small tensors that stay gathered"))
    says = say("tensors in use, gathered ahead, and kept for backward")
    yield fixed(What.GATHERED, scene.gathered_width, live(scene), says, when=When.BACKWARD, surety=Surety.ESTIMATE)


def _reduced(scene: Scene) -> Part:
    """Return the copies that a reduction takes, about: up to three may be under way where communication overlaps.

    All but a lone tensor without padding is copied for the reduce-scatter; an all-reduce scales into a copy. Without a
    bucket the gradients themselves wait until there are enough of them
    (deepspeed/runtime/comm/coalesced_collectives.py:reduce_scatter_coalesced,
    deepspeed/runtime/zero/stage3.py:__avg_scatter_contiguous_grads).
    """
    width = scene.communication
    if not scene.is_contiguous:
        width += scene.weights + (width if width != scene.weights else 0)
    elif not scene.is_on("reduce_scatter", otherwise=True) and width != scene.sums:
        width += scene.sums
    return copied(scene, width, Surety.ESTIMATE)


def _parameters(scene: Scene) -> Iterator[Part]:
    """Yield the shards of the weights, and the second ones of hierarchical groups."""
    says, width, device = say("weights of the shard"), scene.weights, scene.parameter_device
    if device == "none":
        yield share(scene, What.PARAMETERS, width, Over.SHARD, says)
    elif device == "cpu":
        yield share(scene, What.PARAMETERS, width, Over.SHARD, says, place=Place.HOST, pinned=True)
    else:
        yield from _on_nvme(scene)
    if scene.group > 1:
        yield share(
            scene,
            What.PARAMETERS,
            width,
            Over.GROUP,
            say("second shard of the weights, within a group"),
            place=Place.GPU if device == "none" else Place.HOST,
            when=When.BACKWARD,
            pinned=device != "none" and scene.is_on("offload_param.pin_memory"),
            divisor=scene.group,
        )


def _on_nvme(scene: Scene) -> Iterator[Part]:
    """Yield weights on NVMe, of which ``max_in_cpu`` elements stay in host memory, about: in whole sub-groups.

    So do the shards of tensors below 1 MiB. Updated weights leave through a buffer that is as large as the largest
    sub-group would be if its tensors were whole
    (deepspeed/runtime/swap_tensor/partitioned_param_swapper.py:reserve_partitioned_swap_space).
    """
    width, count, most = scene.weights, scene.count(Over.SHARD), scene.number("offload_param.max_in_cpu")
    stay = most if count is None else min(most, count)
    says, bound = say("weights of the shard that stay in host memory"), Surety.BOUND
    yield fixed(What.PARAMETERS, width, stay, says, place=Place.HOST, surety=bound, pinned=True)
    says = say("weights of the shard on NVMe")
    if count is None:
        yield share(scene, What.PARAMETERS, width, Over.SHARD, says, place=Place.NVME, surety=bound)
    else:
        yield fixed(What.PARAMETERS, width, count - stay, says, place=Place.NVME, surety=Surety.ESTIMATE)
    direct = bool(scene.context.is_on("aio.use_gds"))
    elements = scene.number("offload_param.buffer_count") * scene.number("offload_param.buffer_size")
    says, place = say("buffers for weights on their way from NVMe"), Place.GPU if direct else Place.HOST
    yield fixed(What.STAGING, width, elements, says, place=place, pinned=not direct)
    if count is None or stay < count:
        says, whole, about = (
            say("a buffer for updated weights on their way to NVMe"),
            whole_of_largest(scene),
            Surety.ESTIMATE,
        )
        yield Part(What.STAGING, Place.HOST, When.ALWAYS, width, Over.COUNT, whole, says, about, pinned=True)


def _optimizer(scene: Scene) -> Iterator[Part]:
    """Yield master weights, states and gradients of the shard where the optimizer works.

    The master weights of an fp32 model are a copy too: the device is compared with a text, and never is the same
    (deepspeed/runtime/zero/stage3.py:_create_fp32_partitions).
    """
    says = say("gradients of the shard, summed over micro-batches")
    if not scene.is_offloaded:
        yield share(scene, What.GRADIENTS, scene.sums, Over.SHARD, says)
        yield share(scene, What.MASTERS, scene.masters, Over.SHARD, say("master weights of the shard"))
        yield share(scene, What.OPTIMIZER, scene.states, Over.SHARD, say("optimizer states of the shard"))
        yield from _step(scene)
        return
    pinned = scene.is_on("offload_optimizer.pin_memory")
    yield share(scene, What.GRADIENTS, scene.sums, Over.SHARD, says, place=Place.HOST, pinned=pinned)
    if scene.optimizer_device == "nvme":
        yield from _update_from_nvme(scene)
        return
    on_gpu = portion_on_gpu(scene)
    surety = Surety.ESTIMATE if scene.is_partial else Surety.EXACT
    for place, portion in ((Place.HOST, 1 - on_gpu), (Place.GPU, on_gpu)):
        for what, width, says in _updated(scene) if portion else ():
            locked = pinned and place is Place.HOST and what is What.GRADIENTS
            yield share(scene, what, width * portion, Over.SHARD, says, place=place, pinned=locked, surety=surety)


def _updated(scene: Scene) -> tuple[tuple[What, int, str], ...]:
    """Return what an update takes: what it is, bytes per element, and in words."""
    return (
        (What.GRADIENTS, scene.masters, say("gradients of the shard as the optimizer takes them")),
        (What.MASTERS, scene.masters, say("master weights of the shard")),
        (What.OPTIMIZER, scene.states, say("optimizer states of the shard")),
    )


def _step(scene: Scene) -> Iterator[Part]:
    """Yield the gradients that the step makes, one sub-group at a time: a flat tensor, which is converted if need be.

    deepspeed/runtime/zero/stage3.py:_prepare_fp32_grad_for_sub_group
    """
    shard, most = scene.count(Over.SHARD), most_in_one(scene)
    steps = [(What.STEP, scene.masters, say("gradients of one sub-group as the optimizer takes them"))]
    if scene.sums != scene.masters:
        steps.append((What.COPIES, scene.sums, say("the same before they are converted")))
    for what, width, says in steps:
        if shard is None or most >= shard:
            yield share(scene, what, width, Over.SHARD, says, when=When.STEP, surety=Surety.BOUND)
        else:
            yield fixed(what, width, most, says, when=When.STEP, surety=Surety.ESTIMATE)


def _update_from_nvme(scene: Scene) -> Iterator[Part]:
    """Yield what the swapper keeps on NVMe, and its page-locked buffers, each as large as the largest sub-group.

    Sub-groups below ``max(1 MiB, aio.block_size)`` stay in host memory; they are counted as if they did not
    (deepspeed/runtime/swap_tensor/optimizer_utils.py:OptimizerSwapper).
    """
    for what, width, says in _updated(scene):
        yield share(scene, what, width, Over.SHARD, says, place=Place.NVME, surety=Surety.ESTIMATE)
    elements = most_in_one(scene) * scene.number("offload_optimizer.buffer_count")
    says = say("buffers for sub-groups on their way from NVMe")
    yield fixed(What.STAGING, scene.masters, elements, says, place=Place.HOST, surety=Surety.ESTIMATE, pinned=True)
