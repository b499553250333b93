"""Why a candidate stands where it stands, in words."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.memory.activations import Checkpointing
from dsmigrate.memory.formats.sizes import size
from dsmigrate.memory.model import Place
from dsmigrate.recommend.choose import Candidate, Recommendation, relaxed
from dsmigrate.recommend.config import overlapping
from dsmigrate.rules.known_bugs import met

_KEPT = {
    Checkpointing.NONE: "",
    Checkpointing.FULL: " with activation checkpointing",
    Checkpointing.HOST: " with checkpoints on the host",
}
_VISIBLE = 0.05
"""The share of a step from which something is told of."""
_FASTER = 0.9


def reasons(one: Candidate) -> tuple[str, ...]:
    """Return what speaks for a candidate that fits, and what it pays."""
    return tuple(_reasons(one))


def _reasons(one: Candidate) -> Iterator[str]:
    found, taken = one.estimate, one.seconds
    room = found.machine.room
    yield f"{size(found.peak)} per GPU" + ("" if room is None else f" of {size(room)}")
    if found.machine.ranks > 1:
        hidden = "mostly hidden behind backward" if overlapping(one.config) else "little beside the computing"
        hidden = hidden if taken.sending < _VISIBLE * taken.total else "seen in the step"
        elements = "" if found.model.frozen else f"{found.traffic.formula()} elements per step, "
        yield f"sends {elements}{size(found.sent)} per GPU and step: {hidden}"
    if one.checkpointing is not Checkpointing.NONE:
        yield "computes every block twice to save activations: about a third more work"
    if one.variant.optimizer != "none":
        share = round(100 * taken.updating / taken.total)
        yield f"Adam on the CPU takes about {share} % of the step; more accumulation makes that less"
    for place in (Place.HOST, Place.NVME):
        if found.on_node(place):
            yield f"{size(found.on_node(place))} of {'host memory' if place is Place.HOST else 'NVMe'} per node"
    if one.tuned:
        yield "buckets and gathered parameters made smaller than is quickest, to fit"
    for finding in one.findings:
        yield f"{finding.code}: {finding.message}"


def lacking(one: Candidate) -> str:
    """Return what a candidate needs more than there is: "needs 130.4 GiB per GPU of 73.6 GiB"."""
    machine, found = one.estimate.machine, one.estimate
    needs = {
        "GPU": (found.peak, machine.room, "per GPU"),
        "host": (found.on_node(Place.HOST), machine.host_room, "of host memory per node"),
        "NVMe": (found.on_node(Place.NVME), machine.nvme, "of NVMe per node"),
    }
    said = []
    for name in found.lacks:
        need, room, where = needs[name]
        said.append(f"{size(need)} {where} of {size(room)}")
    return f"needs {', '.join(said)}" if said else "; ".join(finding.message for finding in one.findings)


def advice(found: Recommendation) -> tuple[str, ...]:
    """Return what would help where nothing fits."""
    return tuple(_advice(found))


def _advice(found: Recommendation) -> Iterator[str]:
    request = found.request
    if request.nvme_path is None:
        yield "--nvme DIR: optimizer and weights on an NVMe disk"
    if any(one.estimate.lacks == ("host",) for one in found.failing):
        least = min(
            (one for one in found.failing if one.estimate.lacks == ("host",)),
            key=lambda one: one.estimate.on_node(Place.HOST) or 0,
        )
        yield f"more host memory: {least.variant.name} fits with {size(_with_margin(least))} per node"
    for said, one in relaxed(found):
        batch = "" if request.samples is None else f" and a micro-batch of {one.estimate.work.micro_batch}"
        yield f"{said}: {one.variant.name}{_KEPT[one.checkpointing]} fits, {size(one.estimate.peak)} per GPU{batch}"
    if any("GPU" in one.estimate.lacks for one in found.failing):
        yield "a shorter --sequence" + ("" if request.samples is not None else ", or a smaller --micro-batch")


def _batch(found: Recommendation, chosen: Candidate) -> Iterator[str]:
    """Yield what the batch has to be where the config leaves it to its consumer, and by how much it is off."""
    request = found.request
    if request.samples is None or request.per_gpu is None:
        return
    size_, steps = chosen.estimate.work.micro_batch, request.sized(chosen.estimate.work.micro_batch).steps
    if request.consumer is not Consumer.DEEPSPEED:
        yield f"Give it per_device_train_batch_size {size_} and gradient_accumulation_steps {steps}."


def _with_margin(one: Candidate) -> int:
    machine = one.estimate.machine
    assert machine.host is not None  # noqa: S101 - it lacks host memory
    needed = one.estimate.on_node(Place.HOST) or 0
    if machine.host_reserve is not None:
        return needed + machine.host_reserve
    assert machine.host_room  # noqa: S101 - a share of it
    return round(needed * machine.host / machine.host_room)


def notes(found: Recommendation) -> tuple[str, ...]:
    """Return what has to be done outside of the config, or is taken for granted."""
    return tuple(_notes(found))


def _notes(found: Recommendation) -> Iterator[str]:
    chosen, request = found.chosen, found.request
    yield from request.described.notes
    yield from request.assumed
    if chosen is None:
        return
    yield from _batch(found, chosen)
    pays = chosen.variant.optimizer != "none" or chosen.checkpointing is not Checkpointing.NONE
    for said, one in relaxed(found, cheap=True) if pays else ():
        if one.seconds.total < _FASTER * chosen.seconds.total:
            times = chosen.seconds.total / one.seconds.total
            yield f"With {said}: {one.variant.name}{_KEPT[one.checkpointing]}, {times:.1f} times as fast."
    if chosen.variant.group:
        yield "hpZ keeps a second shard of the weights on each node, so that only the first gather of a step leaves it."
    if chosen.checkpointing is not Checkpointing.NONE:
        yield "Switch activation checkpointing on in the model: the config cannot."
    if chosen.checkpointing is Checkpointing.HOST:
        yield "Keeping checkpoints on the host takes deepspeed.checkpointing.configure(checkpoint_in_cpu=True)."
    optimizer = chosen.config.get("optimizer", {})
    if optimizer.get("params", {}).get("lr") == 1e-4:
        yield "optimizer.params.lr 1e-4 stands for your rate; leave the section out if the script makes the optimizer."
        if chosen.variant.optimizer != "none":
            yield "With offload that takes DeepSpeedCPUAdam, or zero_force_ds_cpu_optimizer false."
    if request.machine.host is None and chosen.estimate.on_node(Place.HOST):
        yield "Host memory was not given: it is taken to be enough."
    for bug in met(chosen.view.context):
        cure = f"; {bug.cure}" if bug.cure else ""
        yield f"DeepSpeed {found.version} has a bug that this config meets: {bug.said}{cure}."
    yield "The order is an estimate from round figures of links and processors; memory is that of `dsmigrate memory`."
