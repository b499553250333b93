"""The same schedule with other numbers: start, peak, length of the warm-up, end."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dsmigrate.diff import findings
from dsmigrate.diff.explanations.schedule._owner import PARAMS, built, described, is_another
from dsmigrate.diff.model import Change, Effect, Explained, Severity
from dsmigrate.diff.pair import Pair, shown
from dsmigrate.diff.phrases import as_much
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.knowledge import MISSING
from dsmigrate.languages import mark, say
from dsmigrate.rules.scheduler._shared import WHOLE, unmet

_SEEN = ("warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type", "total_num_steps")
"""The parameters that a course tells in its one line."""
_BRIEFS = {
    "warmup_min_lr": mark("lowest rate"),
    "warmup_max_lr": mark("peak rate"),
    "warmup_num_steps": mark("warm-up steps"),
    "warmup_type": mark("warm-up"),
    "total_num_steps": mark("total steps"),
}
_MOST = 2
_LEAST = 1e-300
_DECAY = '{"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_max_lr": 1e-4'
_CYCLE = '{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, "cycle_max_lr": '


@explanation(
    "DF702",
    "course-of-rate",
    summary="The schedule starts, peaks, warms up or ends otherwise.",
    why=(
        "All counts are optimizer steps. A warm-up is logarithmic unless `warmup_type` is linear, and one of 1 step is"
        " taken as 2. WarmupDecayLR falls to `warmup_min_lr`, WarmupCosineLR to a share of the peak, both at"
        " `total_num_steps`. A resumed run goes on from its step along the new course."
    ),
    source=(
        "deepspeed/runtime/lr_schedules.py:WarmupLR",
        "deepspeed/runtime/lr_schedules.py:WarmupDecayLR",
        "deepspeed/runtime/lr_schedules.py:WarmupCosineLR",
        "deepspeed/runtime/lr_schedules.py:OneCycle",
    ),
    examples=(
        Example(
            _DECAY + ', "warmup_num_steps": 100, "total_num_steps": 1000}}}',
            _DECAY + ', "warmup_num_steps": 200, "total_num_steps": 5000}}}',
            "The learning rate goes 0 → 0.0001 over 200 steps (log), then linearly down until step 5000, instead of 0"
            " → 0.0001 over 100 steps (log), then linearly down until step 1000",
            paths=(f"{PARAMS}.warmup_num_steps", f"{PARAMS}.total_num_steps"),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
        ),
        Example(
            _DECAY + ', "warmup_num_steps": 1, "total_num_steps": 1000}}}',
            _DECAY + ', "warmup_num_steps": 2, "total_num_steps": 1000}}}',
            "The same course: a warm-up of 1 step is taken as 2",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(
            _CYCLE + "1e-3}}}",
            _CYCLE + "1e-2}}}",
            "Peak learning rate, reached after `cycle_first_step_size` steps: `0.01` instead of `0.001`, 10 times as"
            " much",
            paths=(f"{PARAMS}.cycle_max_lr",),
        ),
        Example(
            _CYCLE + "1e-3}}}",
            _CYCLE + '1e-3, "decay_lr_rate": 0.5}}}',
            "Does nothing: OneCycle does not come to use it",
            effects=(Effect.NONE,),
        ),
        Example(
            _DECAY + ', "warmup_num_steps": 0.05, "total_num_steps": 1000}}}',
            _DECAY + ', "warmup_num_steps": 0.08, "total_num_steps": 1000}}}',
            "The schedule refuses `0.08` as it did `0.05`: it wants whole steps",
            severity=Severity.NONE,
        ),
        Example(
            _DECAY + ', "warmup_num_steps": 0.05, "total_num_steps": 1000}}}',
            _DECAY + ', "warmup_num_steps": 100, "total_num_steps": 2000}}}',
            "The learning rate goes 0 → 0.0001 over 100 steps (log), then linearly down until step 2000; before, the"
            " engine could not build the schedule",
            paths=(f"{PARAMS}.warmup_num_steps", f"{PARAMS}.total_num_steps"),
            severity=Severity.WARNING,
        ),
        Example(
            _DECAY + ', "warmup_num_steps": 0.05, "total_num_steps": 1000}}}',
            _DECAY + ', "warmup_num_steps": 100, "total_num_steps": 1000}}}',
            "Optimizer steps until the peak: `100` instead of `0.05`",
            old_version="0.19.2",
            new_version="0.19.2",
        ),
        Example(_CYCLE + "1e-3}}}", _CYCLE + "0.001}}}", ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield the course as it was and as it is."""
    facts = built(pair.new)
    if facts is None or is_another(pair):
        return
    found = [change for change in pair.live(PARAMS) if pair.old.fills(change.path) is pair.new.fills(change.path)]
    seen = [change for change in found if _name(change) in _SEEN]
    before, after = described(pair.old), described(pair.new)
    whole = seen and after and (before or _is_refused(pair.old))
    if whole:
        yield _course(pair, seen, before, after)
    for change in found:
        if change not in seen or not whole:
            yield from _parameter(pair, change)


def _is_refused(side: Side) -> bool:
    """Return whether the engine cannot build the schedule of a side, for one of its parameters."""
    return any(
        finding.effect in findings.REJECTS and side.path_of(finding.path).startswith(f"{PARAMS}.")
        for finding in side.view.findings
    )


def _course(pair: Pair, seen: list[Change], before: str, after: str) -> Explained:
    paths = [change.path for change in seen]
    if before == after:
        message = say("The same course: a warm-up of 1 step is taken as 2")
        return pair.says(*paths, effects=(Effect.NONE,), severity=Severity.NONE, message=message)
    return pair.says(
        *paths,
        effects=(Effect.NUMERICS,),
        severity=Severity.WARNING,
        message=say("The learning rate goes {after}", after=after)
        + (
            say(", instead of {before}", before=before)
            if before
            else say("; before, the engine could not build the schedule")
        ),
        brief=say(", ").join(_brief(change) for change in seen[:_MOST])
        + (say(" and more") if len(seen) > _MOST else ""),
    )


def _parameter(pair: Pair, change: Change) -> Iterator[Explained]:
    facts = built(pair.new)
    parameter = facts.parameters.get(_name(change)) if facts is not None else None
    if facts is None or parameter is None:
        return
    if all(unmet(side.context, parameter) for side in (pair.old, pair.new)):
        message = say("Does nothing: {facts_name} does not come to use it", facts_name=facts.name)
        yield pair.says(change.path, effects=(Effect.NONE,), severity=Severity.NONE, message=message)
        return
    if all(_is_broken(change.path, value) for value in (change.old_meant, change.new_meant)):
        message = say(
            "The schedule refuses {new_meant} as it did {old_meant}: it wants whole steps",
            new_meant=shown(change.new_meant),
            old_meant=shown(change.old_meant),
        )
        yield pair.says(change.path, effects=(Effect.NONE,), severity=Severity.NONE, message=message)
        return
    yield pair.says(
        change.path,
        effects=(Effect.NUMERICS,),
        severity=Severity.WARNING,
        message=say(
            "{rstrip}: {value} instead of {value_2}{times}",
            rstrip=parameter.summary.rstrip(".。"),
            value=_value(change.new, change.new_meant),
            value_2=_value(change.old, change.old_meant),
            times=_times(change),
        ),
        brief=f"`{parameter.name}` {shown(change.old_meant).strip('`')} → {shown(change.new_meant).strip('`')}",
    )


def _is_broken(path: str, value: object) -> bool:
    """Return whether a count of steps is a fraction, which stops the schedule."""
    return path.rpartition(".")[2] in WHOLE and isinstance(value, float) and value != int(value)


def _times(change: Change) -> str:
    """Return how much more it is now: ", 10 times as much"; "" where that says nothing."""
    old, new = change.old_meant, change.new_meant
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) or value < _LEAST for value in (old, new)):
        return ""
    ratio = Fraction(str(new)) / Fraction(str(old))
    return "" if ratio == 1 else say(", {times}", times=as_much(ratio))


def _value(written: object, meant: object) -> str:
    return (
        say("{meant}, the default", meant=shown(meant)) if written is MISSING and meant is not MISSING else shown(meant)
    )


def _brief(change: Change) -> str:
    old, new = (shown(value).strip('`"') for value in (change.old_meant, change.new_meant))
    return f"{say(_BRIEFS[_name(change)])} {old} → {new}"


def _name(change: Change) -> str:
    return change.path.removeprefix(f"{PARAMS}.").partition(".")[0]
