"""Another optimizer, or the same with other settings."""

from __future__ import annotations

from dsmigrate.verify.causes.evidence import Evidence
from dsmigrate.verify.causes.registry import signature
from dsmigrate.verify.model import Step

_LATER = ("loss", "gradient norm", "clipped gradient norm", "weights", "weight decay", "learning rate")
_KERNELS = {"FusedAdam": "AdamW", "DeepSpeedCPUAdam": "AdamW", "FusedLamb": "Lamb", "DeepSpeedCPUAdagrad": "Adagrad"}


@signature(
    "step-beside-the-engine",
    "the optimizer is stepped beside the engine",
    advice="engine.step() is the step: an optimizer that is stepped by itself gets no clipping and no ZeRO, and nothing clears "
    "the gradients",
    explains=_LATER,
    certain=True,
)
def beside_the_engine(evidence: Evidence) -> str | None:
    outside = next((after for _, after in evidence.until() if after.outside), None)
    return (
        None if outside is None else f"at step {outside.index + 1} {outside.optimizer} steps outside of engine.step()"
    )


@signature(
    "other-optimizer",
    "another optimizer",
    advice="keep the script's optimizer and hand it to deepspeed.initialize; Adam in a config means AdamW",
    explains=_LATER,
    certain=True,
)
def other_optimizer(evidence: Evidence) -> str | None:
    a, b = (_kind(step) for step in (evidence.original.steps[0], evidence.converted.steps[0]))
    return None if not a or not b or a == b else f"the original steps with {a}, the conversion with {b}"


@signature(
    "optimizer-settings",
    "the optimizer has other settings",
    advice="weight decay, betas and groups move along with the optimizer: a config's AdamW has weight_decay 0.0 by default, "
    "torch's has 0.01",
    explains=_LATER,
    certain=True,
)
def settings(evidence: Evidence) -> str | None:
    a, b = evidence.original.steps[0], evidence.converted.steps[0]
    for name in ("weight_decay", "betas", "momentum", "eps", "nesterov", "dampening", "alpha"):
        before, after = ({str(group.get(name)) for group in step.groups if name in group} for step in (a, b))
        if before and after and before != after:
            return f"{name} is {', '.join(sorted(before))} in the original and {', '.join(sorted(after))} in the conversion"
    if len(a.groups) != len(b.groups):
        return f"the original has {len(a.groups)} parameter groups, the conversion {len(b.groups)}"
    return None


def _kind(step: Step) -> str:
    return "+".join(_KERNELS.get(name, name) for name in step.optimizer.split("+"))
