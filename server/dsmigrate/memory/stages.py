"""The parts of memory at stages 0, 1 and 2, as DeepSpeed's optimizers allocate them."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.derived.memory import size
from dsmigrate.editing.derived.precision import WIDTHS
from dsmigrate.languages import say
from dsmigrate.memory.model import Over, Part, Place, Surety, What, When
from dsmigrate.memory.parts import fixed, frozen, share
from dsmigrate.memory.scene import ZERO, Scene

_BUCKET = "reduce_bucket_size"
_FP32 = 4
_UNSHARDED_BUCKET = 500_000_000
"""Elements of a reduction at stage 0 (deepspeed/runtime/engine.py:MEMORY_OPT_ALLREDUCE_SIZE)."""


def unsharded(scene: Scene) -> Iterator[Part]:
    """Yield the parts of stage 0.

    fp16 and bf16 keep fp32 master weights on every GPU (deepspeed/runtime/fp16/fused_optimizer.py:FP16_Optimizer,
    unfused_optimizer.py:FP16_UnfusedOptimizer); without them the optimizer works on the weights themselves. The former
    makes one tensor of the gradients of a group, so that both are there for a moment: a step of 1.1 billion parameters
    in bf16 peaks at 24.65 GiB on a GPU, which is 24 bytes for each.
    """
    yield share(scene, What.PARAMETERS, scene.weights, Over.MODEL, "weights")
    yield from frozen(scene)
    yield share(scene, What.GRADIENTS, scene.weights, Over.MODEL, say("gradients of all weights"), when=When.BACKWARD)
    if scene.has_mode:
        yield share(scene, What.MASTERS, 4, Over.MODEL, say("fp32 master weights"))
        yield share(scene, What.STEP, 4, Over.MODEL, say("fp32 gradients"), when=When.STEP, surety=Surety.ESTIMATE)
        if scene.is_flattened:
            says = say("the same tensor by tensor, before they are one")
            yield share(scene, What.COPIES, 4, Over.MODEL, says, when=When.STEP, surety=Surety.BOUND)
    yield share(scene, What.OPTIMIZER, scene.states, Over.MODEL, say("optimizer states"))
    width = scene.weights + (scene.communication if scene.communication != scene.weights else 0)
    count = _UNSHARDED_BUCKET if scene.model is None else min(_UNSHARDED_BUCKET, scene.model.parameters)
    says = say("a flat copy of the gradients that are reduced")
    yield fixed(What.COPIES, width, count, says, when=When.BACKWARD, surety=Surety.BOUND)


def bf16_optimizer(scene: Scene) -> Iterator[Part]:
    """Yield the parts of ``BF16_Optimizer``, which stands in for stage 1 with bf16 weights and fp32 sums.

    It keeps the fp32 gradients of all weights for the whole run, and no bucket: they are reduced as one tensor, in a
    copy if they travel in another format (deepspeed/runtime/bf16_optimizer.py:_setup_for_real_optimizer,
    deepspeed/runtime/engine.py:allreduce_bucket).
    """
    yield share(scene, What.PARAMETERS, scene.weights, Over.MODEL, "weights")
    yield from frozen(scene)
    yield share(scene, What.GRADIENTS, 4, Over.MODEL, say("fp32 gradients of all weights"))
    if not scene.context.is_on("bf16.immediate_grad_update"):
        says = say("bf16 gradients of a backward")
        yield share(scene, What.GRADIENTS, scene.weights, Over.MODEL, says, when=When.BACKWARD)
    if scene.communication != _FP32:
        says = say("the gradients in the format that they travel in")
        yield share(scene, What.COPIES, scene.communication, Over.MODEL, says, when=When.BACKWARD)
    yield share(scene, What.MASTERS, 4, Over.SHARD, say("fp32 master weights of the shard"))
    yield share(scene, What.OPTIMIZER, scene.states, Over.SHARD, say("optimizer states of the shard"))


def partitioned(scene: Scene) -> Iterator[Part]:
    """Yield the parts of stage 1 and 2 (deepspeed/runtime/zero/stage_1_and_2.py:DeepSpeedZeroOptimizer).

    The gradients of stage 2 are those of the tensors of which the rank owns a part: whole tensors, so that the two at
    the borders of the shard count in full. Stage 1 holds all gradients until the gradient accumulation boundary; with
    ``overlap_comm`` and one micro-batch per step they shrink to those of stage 2 as backward goes on.
    """
    yield share(scene, What.PARAMETERS, scene.weights, Over.MODEL, "weights")
    yield from frozen(scene)
    yield from _gradients(scene)
    if scene.is_offloaded:
        yield from _offloaded(scene)
    else:
        yield share(scene, What.MASTERS, scene.masters, Over.SHARD, say("master weights of the shard"))
        yield share(scene, What.OPTIMIZER, scene.states, Over.SHARD, say("optimizer states of the shard"))
        yield from _step(scene)
    yield from bucket(scene, When.BACKWARD)
    yield from _reduced(scene)


def _step(scene: Scene) -> Iterator[Part]:
    """Yield the gradients that the step makes: a flat tensor, which is converted if need be.

    Where fp32 gradients of 16-bit weights are summed in a buffer of the shard, the optimizer takes them from there.
    """
    if scene.is_summed_in_shards and scene.masters == _FP32:
        return
    says = say("gradients of the shard as the optimizer takes them")
    yield share(scene, What.STEP, scene.masters, Over.SHARD, says, when=When.STEP, surety=Surety.BOUND)
    if scene.buffer != scene.masters:
        says = say("the same before they are converted")
        yield share(scene, What.COPIES, scene.buffer, Over.SHARD, says, when=When.STEP, surety=Surety.BOUND)


def _reduced(scene: Scene) -> Iterator[Part]:
    """Yield the copies that a reduction takes: the slices of a bucket in one tensor, and what travels.

    The slices of a bucket that belong to one owner need no copy. Without a bucket the gradients themselves wait until
    there are enough of them (deepspeed/runtime/zero/stage_1_and_2.py:average_tensor).
    """
    slices = scene.ranks != 1 and (scene.is_on("reduce_scatter", otherwise=True) or not scene.is_contiguous)
    width = scene.buffer * slices + (scene.communication if scene.communication != scene.buffer else 0)
    if scene.stage == 2 and not scene.is_contiguous:  # stage 1 has them all anyway
        width += scene.weights
    if width:
        yield copied(scene, width, Surety.BOUND)


def copied(scene: Scene, width: float, surety: Surety) -> Part:
    """Return copies of the gradients that are reduced together: of a bucket, or of a tensor that is larger."""
    count = scene.number(_BUCKET)
    if scene.model is not None:
        count = max(min(count, scene.model.parameters), scene.model.largest or 0)
    says = say("a flat copy of the gradients that are reduced")
    return fixed(What.COPIES, width, count, says, when=When.BACKWARD, surety=surety)


def _gradients(scene: Scene) -> Iterator[Part]:
    """Yield gradients on the GPU. Offload at stage 2 moves those of each bucket to the host."""
    when, about = When.BACKWARD, Surety.ESTIMATE
    if scene.stage == 1:
        yield share(scene, What.GRADIENTS, scene.sums, Over.MODEL, say("gradients of all weights"), when=when)
        if scene.is_summed_in_shards:
            says = say("reduced fp32 gradients of the shard")
            yield share(scene, What.COPIES, scene.sums, Over.SHARD, says, when=when)
    elif scene.is_summed_in_shards:
        yield share(scene, What.GRADIENTS, scene.sums, Over.SHARD, say("fp32 gradients of the shard"), when=when)
    elif not scene.is_offloaded:
        says = say("gradients of the shard")
        yield share(scene, What.GRADIENTS, scene.weights, Over.SHARD, says, when=when, surety=about)
        if scene.steps is None or scene.steps > 1:
            says = say("gradients of a micro-batch beside the sum of those before")
            yield share(scene, What.COPIES, scene.weights, Over.SHARD, says, when=when, surety=about)


def _offloaded(scene: Scene) -> Iterator[Part]:
    """Yield what an optimizer on the host keeps there, and the buffers of the way."""
    host, pinned = Place.HOST, scene.is_on("offload_optimizer.pin_memory")
    says = say("gradients of the shard as the optimizer takes them")
    yield share(scene, What.GRADIENTS, scene.masters, Over.SHARD, says, place=host, pinned=pinned)
    says = say("master weights of the shard")
    yield share(scene, What.MASTERS, scene.masters, Over.SHARD, says, place=host, pinned=pinned)
    yield share(scene, What.OPTIMIZER, scene.states, Over.SHARD, say("optimizer states of the shard"), place=host)
    says = say("updated weights on their way back")
    yield share(scene, What.STAGING, scene.weights, Over.SHARD, says, place=host, pinned=pinned)
    if scene.sums_on_host and (scene.steps is None or scene.steps > 1):
        says, about = say("gradients summed over micro-batches"), Surety.ESTIMATE
        yield share(scene, What.STAGING, scene.weights, Over.SHARD, says, place=host, pinned=pinned, surety=about)
    if scene.model is not None and scene.model.largest is not None:
        says = say("a buffer for the gradient of the largest tensor")
        yield fixed(What.STAGING, scene.weights, scene.model.largest, says, place=host, pinned=pinned)
        yield fixed(What.STAGING, scene.weights, scene.model.largest, says)


def bucket(scene: Scene, when: When) -> Iterator[Part]:
    """Yield the standing buckets of gradients: two at stage 1 and 2 where communication overlaps.

    The format is that of the release and stage (``memory`` of the key's facts). With autocast each format has buckets
    of its own, which depends on the model; one is counted.
    """
    if not scene.is_contiguous:
        return
    key = scene.context.known.key(f"{ZERO}.{_BUCKET}")
    elements = scene.number(_BUCKET)
    found = size(scene.context, key, elements) if key is not None else None
    width = scene.communication if scene.stage == 3 else scene.weights
    if found is not None and found.format is not None:
        width = WIDTHS[found.format]
    copies = found.copies if found is not None else 2 if scene.stage < 3 and scene.overlaps else 1
    for _ in range(copies):
        yield fixed(What.BUCKETS, width, elements, say("a bucket that gradients are reduced in"), when=when)
