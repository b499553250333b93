"""The learning rate takes another course."""

from __future__ import annotations

from dsmigrate.verify.causes.evidence import Evidence, close, is_ratio, ratio
from dsmigrate.verify.causes.registry import signature
from dsmigrate.verify.numbers import shown, told_apart

_EXPLAINS = ("learning rate",)


@signature(
    "schedule-stands-still",
    "the learning rate no longer moves",
    advice="a scheduler that stays with the script has to be stepped by the script; one that is handed to "
    "deepspeed.initialize is stepped by engine.step() alone",
    explains=_EXPLAINS,
)
def stands_still(evidence: Evidence) -> str | None:
    before = [step.rates for step in evidence.original.steps]
    after = [step.rates for step in evidence.converted.steps]
    if len(set(after)) > 1 or len(set(before)) < 2 or evidence.index == 0:
        return None
    return f"it stays {_rates(after[0])}, in the original it is {_rates(evidence.a.rates)} at step {evidence.index + 1}"


@signature(
    "schedule-too-fast",
    "the learning rate advances too fast",
    advice="the scheduler is stepped twice, or per micro-batch: the engine steps a scheduler that was handed to "
    "deepspeed.initialize at every optimizer step, besides the script's own step()",
    explains=_EXPLAINS,
    follows=("accumulation-window", "schedule-stands-still"),
)
def too_fast(evidence: Evidence) -> str | None:
    before = [step.rates for step in evidence.original.steps]
    after = [step.rates for step in evidence.converted.steps]
    if evidence.setting("engine_scheduler"):
        return (
            f"the engine has a scheduler of its own ({evidence.setting('engine_scheduler')}), which steps at every step"
        )
    for factor in range(2, 65):
        ahead = [(before[i * factor], after[i]) for i in range(len(after)) if i * factor < len(before)]
        if len(ahead) > 2 and len(set(before)) > 2 and all(close(a, b, 1e-4) for a, b in ahead):
            return f"it is at step i where the original is at step {factor} × i"
    later = [step.schedulers for step in evidence.converted.steps]
    earlier = [step.schedulers for step in evidence.original.steps]
    if sum(later[: evidence.index + 1]) > sum(earlier[: evidence.index + 1]):
        return (
            f"up to step {evidence.index + 1} schedulers are stepped {sum(later[: evidence.index + 1])} times, in the original "
            f"{sum(earlier[: evidence.index + 1])} times"
        )
    return None


@signature(
    "schedule-too-slow",
    "the learning rate advances too slowly",
    advice="the scheduler is stepped less often: per epoch instead of per step, or only at some steps",
    explains=_EXPLAINS,
    follows=("accumulation-window", "schedule-stands-still"),
)
def too_slow(evidence: Evidence) -> str | None:
    before = [step.rates for step in evidence.original.steps]
    after = [step.rates for step in evidence.converted.steps]
    for factor in range(2, 65):
        behind = [(before[i], after[i * factor]) for i in range(len(before)) if i * factor < len(after)]
        if len(behind) > 2 and len(set(after)) > 2 and all(close(a, b, 1e-4) for a, b in behind):
            return f"it is at step {factor} × i where the original is at step i"
    counts = tuple(
        sum(s.schedulers for s in run.steps[: evidence.index + 1]) for run in (evidence.original, evidence.converted)
    )
    if counts[1] < counts[0]:
        return f"up to step {evidence.index + 1} schedulers are stepped {counts[1]} times, in the original {counts[0]} times"
    return None


@signature(
    "schedule-shifted",
    "the learning rate is one step early or late",
    advice="step the scheduler where it was stepped: before or after engine.step()",
    explains=_EXPLAINS,
    follows=("accumulation-window", "schedule-stands-still"),
)
def shifted(evidence: Evidence) -> str | None:
    before = [step.rates for step in evidence.original.steps]
    after = [step.rates for step in evidence.converted.steps]
    for shift, word in ((1, "early"), (-1, "late")):
        one, other = (before[1:], after) if shift > 0 else (before, after[1:])
        pairs = list(zip(one, other, strict=False))
        if len(pairs) > 2 and len(set(before)) > 2 and all(close(a, b, 1e-5) for a, b in pairs):
            return f"it has the original's values, one step {word}"
    return None


@signature(
    "rate-multiplied",
    "the learning rate is multiplied by a constant",
    advice="look for a rule that scales it by the number of processes or the accumulation, and for lr in the config",
    explains=_EXPLAINS,
)
def multiplied(evidence: Evidence) -> str | None:
    if evidence.index or not evidence.a.rates or not evidence.b.rates:
        return None
    found = ratio(evidence.a.rates[0], evidence.b.rates[0])
    names = {"the number of processes": evidence.ranks, "the number of backwards per step": evidence.a.backwards}
    for name, count in names.items():
        if count > 1 and (is_ratio(found, count) or is_ratio(found, 1 / count)):
            return f"it is {shown(found)} times the original's: {name} is {count}"
    return None


@signature(
    "other-schedule",
    "another schedule, or another learning rate",
    advice="keep the script's own scheduler, built on its own optimizer; schedulers of the config are others (WarmupLR is not "
    "cosine with warm-up)",
    fallback=True,
    explains=_EXPLAINS,
)
def other_schedule(evidence: Evidence) -> str | None:
    before, after = _rates(evidence.a.rates), _rates(evidence.b.rates)
    if before == after:
        pairs = zip(evidence.a.rates, evidence.b.rates, strict=False)
        before, after = next(told_apart(a, b) for a, b in pairs if a != b)
    return f"at step {evidence.index + 1} it is {after} instead of {before}"


def _rates(rates: tuple[float, ...]) -> str:
    return ", ".join(f"{rate:.6g}" for rate in dict.fromkeys(rates)) or "unknown"
