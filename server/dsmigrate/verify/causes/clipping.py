"""The limit of the gradient norm."""

from __future__ import annotations

from dsmigrate.verify.causes.evidence import Evidence
from dsmigrate.verify.causes.registry import signature
from dsmigrate.verify.numbers import shown, told_apart

_EXPLAINS = ("clipped gradient norm", "loss", "weights", "gradient norm")


@signature(
    "clipping-default",
    "DeepSpeed clips at 1.0 because the config has no gradient_clipping",
    advice="write the limit of the script into the config, 0.0 for none: since 0.19.3 the default of gradient_clipping is 1.0",
    explains=_EXPLAINS,
    certain=True,
)
def clipping_default(evidence: Evidence) -> str | None:
    return _bites(evidence) if _is_default(evidence) else None


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
    return None if evidence.b.limit is None or _is_default(evidence) else _bites(evidence)


def _is_default(evidence: Evidence) -> bool:
    return evidence.b.limit == 1.0 and not evidence.setting("clipping_written")


def _bites(evidence: Evidence) -> str | None:
    """Say at which step the two limits make a difference."""
    for a, b in evidence.until():
        limits = [limit for limit in (a.limit, b.limit) if limit is not None]
        norm = max(a.norm or 0.0, b.norm or 0.0)  # what divides the gradients as well hides the limit
        if a.limit != b.limit and limits and norm > min(limits):
            here, there = told_apart(a.limit, b.limit)
            return (
                f"at step {a.index + 1} the norm is {shown(norm)}, and the limit is {here} in the original and {there} "
                "in the conversion"
            )
    return None


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
