"""Why a candidate stands where it stands, in words."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.memory.activations import Checkpointing
from dsmigrate.memory.formats.sizes import size
from dsmigrate.memory.model import Place
from dsmigrate.recommend.choose import Candidate, Recommendation, relaxed
from dsmigrate.recommend.config import LOW_BETA, overlapping
from dsmigrate.recommend.speed import exchanged
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
    if one.variant.sequence > 1:
        each = size(round(exchanged(found) * (found.traffic.steps or 1)))
        yield f"shares each sample among {one.variant.sequence} GPUs, which the script has to do: {each} more is sent"
    if one.variant.low:
        yield "changes numbers: master weights and optimizer states are in bf16"
    if one.variant.quantised:
        yield "changes numbers: weights are gathered in 8 bit"
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
    yield from _more_host(found)
    for said, one in relaxed(found):
        batch = "" if request.samples is None else f" and a micro-batch of {one.estimate.work.micro_batch}"
        yield f"{said}: {one.variant.name}{_KEPT[one.checkpointing]} fits, {size(one.estimate.peak)} per GPU{batch}"
    if any("GPU" in one.estimate.lacks for one in found.failing):
        yield "a shorter --sequence" + ("" if request.samples is not None else ", or a smaller --micro-batch")


def _more_host(found: Recommendation) -> Iterator[str]:
    """Yield with how much host memory something fits that lacks nothing else, first what changes nothing."""
    lacking = [one for one in found.failing if one.estimate.lacks == ("host",)]
    lacking.sort(key=lambda one: one.estimate.on_node(Place.HOST) or 0)
    plain = [one for one in lacking if one.variant.is_plain]
    for one in (*plain[:1], *(one for one in lacking[:1] if not one.variant.is_plain)):
        yield f"more host memory: {one.variant.name} fits with {size(_with_margin(one))} per node"


def _batch(found: Recommendation, chosen: Candidate) -> Iterator[str]:
    """Yield what the batch has to be where the config leaves it to its consumer."""
    request = found.request
    if request.samples is None:
        return
    size_, steps = chosen.estimate.work.micro_batch, chosen.estimate.traffic.steps
    if request.consumer is not Consumer.DEEPSPEED:
        yield f"Give it per_device_train_batch_size {size_} and gradient_accumulation_steps {steps}."


def _otherwise(found: Recommendation, chosen: Candidate) -> Iterator[str]:
    """Yield what would be faster, or would leave script and numbers as they are where the choice does not."""
    plain = chosen.variant.is_plain
    pays = not plain or chosen.variant.optimizer != "none" or chosen.checkpointing is not Checkpointing.NONE
    for said, one in relaxed(found, cheap=True) if pays else ():
        if not plain and one.variant.is_plain:
            yield f"With {said}: {one.variant.name}{_KEPT[one.checkpointing]}, and nothing of this."
        elif one.seconds.total < _FASTER * chosen.seconds.total:
            times = chosen.seconds.total / one.seconds.total
            yield f"With {said}: {one.variant.name}{_KEPT[one.checkpointing]}, {times:.1f} times as fast."
    for one in found.fitting if pays and plain else ():
        if not one.variant.is_plain and one.seconds.total < _FASTER * chosen.seconds.total:
            what = "changes of the script" if one.variant.is_exact else "other numbers"
            times = chosen.seconds.total / one.seconds.total
            yield f"At the price of {what}: {one.variant.name}{_KEPT[one.checkpointing]}, {times:.1f} times as fast."
            break


def _asked(found: Recommendation, chosen: Candidate) -> Iterator[str]:
    """Yield what a choice that changes script or numbers asks for."""
    variant, consumer = chosen.variant, found.request.consumer
    if not variant.is_plain:
        others = "" if variant.is_exact else " that keeps the numbers"
        yield f"Nothing fits{others} as the script is: {variant.name} is the fastest of the rest."
        yield from (f"Otherwise {line}." for line in _more_host(found))
    if variant.low:
        yield "In bf16 an update below about 1/256 of its weight is lost: compare the loss with that of fp32 masters."
        give = "betas[1] is" if consumer is Consumer.DEEPSPEED else "Give the optimizer a beta2 of"
        yield f"{give} {LOW_BETA}: a second moment in bf16 never gets smaller with 0.999."
    if variant.sequence > 1 and consumer is Consumer.DEEPSPEED:
        yield (
            f"sequence_parallel_size {variant.sequence} splits no sample: give deepspeed.initialize the mpu of "
            "UlyssesSPAttentionHF.register_with_transformers, wrap the loader in UlyssesSPDataLoaderAdapter, and "
            "weight the loss of each rank by its tokens."
        )
    elif variant.sequence > 1:
        yield (
            f'No key of the config splits samples: ParallelismConfig(sp_backend="deepspeed", sp_size='
            f"{variant.sequence}) of Accelerate does, which TrainingArguments takes as parallelism_config."
        )


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
    yield from _otherwise(found, chosen)
    yield from _asked(found, chosen)
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
