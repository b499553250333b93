"""Other data: sizes of batches, windows of accumulation, order, ranks."""

from __future__ import annotations

from dsmigrate.verify import distance
from dsmigrate.verify.causes.evidence import Evidence, alike
from dsmigrate.verify.causes.registry import signature
from dsmigrate.verify.model import Step

_LATER = (
    "inputs",
    "loss",
    "gradient norm",
    "clipped gradient norm",
    "samples",
    "number of steps",
    "learning rate",
    "weights",
)


@signature(
    "accumulation-window",
    "another number of micro-batches per optimizer step",
    advice="keep the gate of the accumulation around engine.step(), its last short window included, or let DeepSpeed "
    "count them (managed) and call engine.step() after every micro-batch",
    explains=("samples", "backwards", "inputs"),
    certain=True,
)
def accumulation_window(evidence: Evidence) -> str | None:
    pairs = evidence.until()
    found = next(((a, b) for a, b in pairs if a.backwards != b.backwards), None)
    if found is None:
        return None
    a, b = found
    before = [step.backwards for step, _ in pairs[: a.index + 1]]
    tail = a.index > 0 and len(set(before[:-1])) == 1 and before[-1] < before[0]
    said = f"the original takes step {a.index + 1} after {a.backwards} backwards, the conversion after {b.backwards}"
    return f"{said}: the last, shorter window of an epoch is treated in another way" if tail else said


@signature(
    "batch-size",
    "another effective batch",
    advice="compare the batch size of the loaders and train_micro_batch_size_per_gpu; the effective batch is micro-batch "
    "× accumulation × processes",
    explains=("samples", "inputs"),
    certain=True,
    follows=("accumulation-window",),
)
def batch_size(evidence: Evidence) -> str | None:
    for a, b in evidence.until():
        if a.backwards == b.backwards and a.samples != b.samples:
            return f"step {a.index + 1} sees {a.samples} samples in the original and {b.samples} in the conversion"
    return None


@signature(
    "same-data-on-every-rank",
    "every process trains on the same samples",
    advice="keep the DistributedSampler: the engine does not distribute a loader that the script makes itself",
    explains=_LATER,
    certain=True,
)
def same_data_on_every_rank(evidence: Evidence) -> str | None:
    for a, b in evidence.until():
        if _repeats_over_ranks(b) and not _repeats_over_ranks(a):
            return (
                f"at step {a.index + 1} all ranks of the conversion get the same inputs, those of the original do not"
            )
    return None


@signature(
    "epoch-order",
    "every epoch sees the samples in the same order",
    advice="keep sampler.set_epoch(epoch)",
    explains=_LATER,
    certain=True,
    follows=("accumulation-window", "batch-size"),
)
def epoch_order(evidence: Evidence) -> str | None:
    steps = evidence.converted.steps
    index = next((i for i, (a, b) in enumerate(evidence.until()) if not alike(a, b)), 0)
    if not index:
        return None
    again = any(_same_inputs(steps[index], earlier) for earlier in steps[:index])
    if not again or any(_same_inputs(evidence.original.steps[index], one) for one in evidence.original.steps[:index]):
        return None
    return f"from step {index + 1} on the conversion gets the batches of an earlier epoch again, the original new ones"


@signature(
    "data-order",
    "other samples, or the same in another order",
    advice="look at samplers, shuffling and seeds: what is drawn between the seed and the loader must be the same",
    fallback=True,
    explains=_LATER,
    certain=True,
)
def data_order(evidence: Evidence) -> str | None:
    index = next((i for i, (a, b) in enumerate(evidence.until()) if not alike(a, b)), None)
    if index is None or evidence.a.samples != evidence.b.samples:
        return None
    return f"the inputs differ from step {index + 1} on, though there are as many of them"


def _repeats_over_ranks(step: Step) -> bool:
    return len(step.data) > 1 and bool(step.data[0]) and all(row == step.data[0] for row in step.data[1:])


def _same_inputs(one: Step, other: Step) -> bool:
    return bool(one.data and one.data[0]) and len(one.data) == len(other.data) and distance.inputs(one, other) == 0
