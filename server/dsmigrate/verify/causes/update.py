"""Everything that leads to a step is the same, and its result is not."""

from __future__ import annotations

from dsmigrate.verify import distance
from dsmigrate.verify.causes.evidence import Evidence, shown
from dsmigrate.verify.causes.registry import signature

_LATER = ("loss", "gradient norm", "clipped gradient norm", "weights")


@signature(
    "steps-skipped",
    "the two skip different steps for overflow",
    advice="the loss scale starts or moves in another way: initial_scale_power, loss_scale_window and hysteresis of the fp16 "
    "section, or a GradScaler that is stepped without the engine",
    explains=("skipped", *_LATER),
    certain=True,
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
    explains=("loss", "gradient norm"),
)
def changed_late(evidence: Evidence) -> str | None:
    if evidence.index != 1 or int(evidence.setting("zero_stage", 0)) < 1:
        return None
    if not (evidence.same_data() and evidence.same_start()):
        return None
    return (
        "weights, data, loss, gradient and learning rate of the first step are the same, and the loss after it is "
        f"{shown(evidence.b.loss)} instead of {shown(evidence.a.loss)}: the step did not start from the weights of the forward"
    )


@signature(
    "epochs",
    "another number of optimizer steps",
    advice="look at the length of loaders, at accumulation, and at conditions that end the loop",
    explains=("number of steps",),
    certain=True,
)
def number_of_steps(evidence: Evidence) -> str | None:
    counts = len(evidence.original.steps), len(evidence.converted.steps)
    return (
        None
        if counts[0] == counts[1]
        else f"the original takes {counts[0]} steps until its end, the conversion {counts[1]}"
    )
