"""The limit of the gradient norm."""

from __future__ import annotations

from dsmigrate.verify.causes.evidence import Evidence, shown
from dsmigrate.verify.causes.registry import signature

_EXPLAINS = ("clipped gradient norm", "loss", "weights", "gradient norm")


@signature(
    "clipping-default",
    "DeepSpeed clips at 1.0 where the script does not clip",
    advice='write "gradient_clipping": 0.0 into the config: since 0.19.3 the default is 1.0',
    explains=_EXPLAINS,
    certain=True,
)
def clipping_default(evidence: Evidence) -> str | None:
    if any(a.limit is not None for a, _ in evidence.until()) or evidence.b.limit != 1.0:
        return None
    bites = [(a, b) for a, b in evidence.until() if b.norm is not None and b.norm > 1.0]
    return None if not bites else f"at step {bites[0][0].index + 1} a norm of {shown(bites[0][1].norm)} is clipped to 1"


@signature(
    "clipping-lost",
    "gradients are no longer clipped",
    advice="write the limit of clip_grad_norm_ into the config as gradient_clipping: under ZeRO 1-3 the function itself "
    "sees no gradients and does nothing",
    explains=_EXPLAINS,
    certain=True,
)
def clipping_lost(evidence: Evidence) -> str | None:
    for before, after in evidence.until():
        if before.limit is not None and after.limit is None and (before.norm or 0.0) > before.limit:
            return (
                f"at step {before.index + 1} the original clips a norm of {shown(before.norm)} at {shown(before.limit)}"
            )
    return None


@signature(
    "clipping-limit",
    "gradients are clipped at another limit",
    advice="gradient_clipping must be the limit that the script gives to clip_grad_norm_, arguments of the command line "
    "included",
    explains=_EXPLAINS,
    certain=True,
)
def clipping_limit(evidence: Evidence) -> str | None:
    a, b = evidence.a, evidence.b
    if b.limit is None or a.limit == b.limit or (a.limit is None and b.limit == 1.0):
        return None
    if not any(
        (after.norm or 0.0) > min(filter(None, (before.limit, after.limit)), default=0.0)
        for before, after in evidence.until()
    ):
        return None
    return f"the limit is {shown(a.limit)} in the original and {shown(b.limit)} in the conversion"


@signature(
    "clipping-of-scaled-gradients",
    "the original clips gradients that are still multiplied with the loss scale",
    advice="it lacks scaler.unscale_(optimizer) before clip_grad_norm_, so that its steps are far too small; the engine "
    "clips unscaled gradients, which is what was meant: add the line to the original to compare the rest",
    explains=_EXPLAINS,
    certain=True,
)
def clipping_of_scaled_gradients(evidence: Evidence) -> str | None:
    a = evidence.a
    if not a.scale or a.scale <= 1.0 or a.limit is None or a.applied is None or not a.norm:
        return None
    if a.applied * a.scale > a.limit * 1.01 or a.norm * a.scale <= a.limit or a.applied > 0.5 * min(a.norm, a.limit):
        return None
    return (
        f"at step {a.index + 1} a norm of {shown(a.norm)} becomes {shown(a.applied)}, which is the limit, {shown(a.limit)}, "
        f"divided by the loss scale, {shown(a.scale)}"
    )
