"""What is different before the first step: weights, mode, precision, random numbers."""

from __future__ import annotations

from dsmigrate.verify import distance
from dsmigrate.verify.causes.evidence import Evidence
from dsmigrate.verify.causes.registry import signature
from dsmigrate.verify.model import Run

_NUMBERS = ("loss", "gradient norm", "clipped gradient norm", "weights")


@signature(
    "no-engine",
    "the conversion trains without a DeepSpeed engine",
    advice="give the converted script, and arguments with which it calls deepspeed.initialize: what was compared is the "
    "original with itself",
    explains=("engine",),
    certain=True,
)
def no_engine(evidence: Evidence) -> str | None:
    if evidence.converted.setting.get("kind") != "plain":
        return None
    return "no engine was made, and the model is called as the original's is"


@signature(
    "precision",
    "the conversion computes in another precision",
    advice="the engine switches a surrounding autocast region off unless the config has torch_autocast.enabled; "
    "bf16/fp16.enabled is not autocast: it rounds the weights themselves",
    explains=(*_NUMBERS, "skipped"),
    certain=True,
)
def precision(evidence: Evidence) -> str | None:
    weights = tuple(_weights_in(run) for run in (evidence.original, evidence.converted))
    if weights[0] != weights[1]:
        return f"the weights are {weights[0]} in the original and {weights[1]} in the conversion"
    regions = tuple(_autocast_in(run) for run in (evidence.original, evidence.converted))
    if regions[0] != regions[1]:
        return f"the forward runs under {regions[0]} in the original and under {regions[1]} in the conversion"
    return None


@signature(
    "evaluation-mode",
    "the model is not in the mode it was in",
    advice="engine.train() and engine.eval() return None: call them for their effect, after every evaluation",
    explains=_NUMBERS,
    certain=True,
)
def evaluation_mode(evidence: Evidence) -> str | None:
    for before, after in evidence.until():
        if before.train and after.train and before.train != after.train:
            modes = tuple("training" if step.train == (True,) else "evaluation" for step in (before, after))
            return (
                f"at step {before.index + 1} the original trains in {modes[0]} mode and the conversion in {modes[1]} mode: "
                "dropout and batch normalisation behave differently"
            )
    return None


@signature(
    "other-start",
    "the conversion starts from other weights",
    advice="seed before the model is made, and load weights before deepspeed.initialize (or with engine.load_checkpoint)",
    explains=_NUMBERS,
    certain=True,
)
def other_start(evidence: Evidence) -> str | None:
    far = distance.difference(evidence.original.start, evidence.converted.start)
    half = _weights_in(evidence.converted) != "float32"
    if far < (1e-2 if half else 1e-5):
        return None
    return f"before the first step the weights differ by {far:.2g} of their norm"


@signature(
    "random-numbers",
    "dropout, noise or augmentation draws other random numbers",
    advice="what draws random numbers between the seed and the loop must be the same in both; compare with dropout at 0 to "
    "see whether anything else differs",
    fallback=True,
    explains=_NUMBERS,
)
def random_numbers(evidence: Evidence) -> str | None:
    for before, after in evidence.until():
        if before.random != after.random and None not in {before.random, after.random}:
            dropout = " and the model has dropout" if evidence.original.setting.get("dropout") else ""
            return f"at step {before.index + 1} the state of the random generator is another one{dropout}"
    return None


def _weights_in(run: Run) -> str:
    kinds = {str(one["dtype"]) for one in run.start.tensors.values() if not one.get("buffer")}
    return ", ".join(sorted(kinds)) or "unknown"


def _autocast_in(run: Run) -> str:
    kinds = sorted({kind for step in run.steps[:1] for kind in step.autocast})
    return f"autocast to {', '.join(kinds)}" if kinds else "no autocast"
