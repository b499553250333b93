"""Everything that leads to a step is the same, and its result is not."""

from __future__ import annotations

from dsmigrate.verify import distance
from dsmigrate.verify.causes.evidence import Evidence
from dsmigrate.verify.causes.registry import signature
from dsmigrate.verify.numbers import shown

_LATER = ("loss", "gradient norm", "clipped gradient norm", "weights")


@signature(
    "steps-skipped",
    "the two skip different steps for overflow",
    advice="the loss scale starts or moves in another way: initial_scale_power, loss_scale_window and hysteresis of the fp16 "
    "section, or a GradScaler that is stepped without the engine",
    explains=("skipped", *_LATER),
    certain=True,
    early=True,
)
def steps_skipped(evidence: Evidence) -> str | None:
    for before, after in evidence.until():
        if before.skipped != after.skipped:
            who = "the original" if before.skipped else "the conversion"
            return f"{who} skips step {before.index + 1}, the other takes it"
    return None


@signature(
    "weights-stand-still",
    "the weights do not change",
    advice="engine.step() has to be called, on the engine that the forward goes through, with its parameters in the optimizer",
    explains=_LATER,
    certain=True,
    follows=("gradient-gone",),
)
def stand_still(evidence: Evidence) -> str | None:
    before, after = distance.moved(evidence.original), distance.moved(evidence.converted)
    if not evidence.converted.end or not before or after > 1e-9 * before:
        return None
    return f"{len(evidence.converted.steps)} steps move them by nothing, in the original by {shown(before)}"


@signature(
    "weights-changed-late",
    "weights were changed after deepspeed.initialize",
    advice="load and edit weights before deepspeed.initialize, or load them with engine.load_checkpoint: ZeRO 1-3 keeps a "
    "master copy, which overwrites the module at the next step",
    explains=_LATER,
    certain=True,
)
def changed_late(evidence: Evidence) -> str | None:
    far = evidence.setting("master_apart")
    half = any("16" in str(one["dtype"]) for one in evidence.converted.start.tensors.values())
    if far is None or far < (2e-2 if half else 1e-5):
        return None
    return (
        f"before the first step the weights lie {shown(far)} of their norm away from the copy that ZeRO steps, so that the "
        "step does not start from the weights of the forward"
    )


@signature(
    "epochs",
    "another number of optimizer steps",
    advice="look at the length of loaders, at accumulation, and at conditions that end the loop",
    explains=("number of steps",),
    certain=True,
    follows=("accumulation-window", "batch-size"),
)
def number_of_steps(evidence: Evidence) -> str | None:
    counts = len(evidence.original.steps), len(evidence.converted.steps)
    return (
        None
        if counts[0] == counts[1]
        else f"the original takes {counts[0]} steps until its end, the conversion {counts[1]}"
    )
