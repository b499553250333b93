"""Monitors, profilers and progress lines: what is written down of training, and not training itself."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.effects import effects_of
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair, shown
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.knowledge import MISSING, Key
from dsmigrate.languages import mark, say
from dsmigrate.rules.context import UNKNOWN

_WATCHES = frozenset({"observability", "speed", "none"})
_INTERVAL = "steps_per_print"
_PROFILER = "flops_profiler"
_TIMERS = "wall_clock_breakdown"
_WITH_TIMERS = {
    True: mark("; `{timers}` goes with it and prints times in every pass"),
    False: mark(", and `{timers}` with it"),
}


@explanation(
    "DF910",
    "observer",
    summary="A monitor, a profiler or a timer is switched on or off, or writes something else.",
    why=(
        "Monitors and profilers write down what training does; the numbers stay. Profilers and timers wait for the"
        " device to measure it, which costs time while they are on. The flops profiler switches"
        " `wall_clock_breakdown` on, whatever the file says of that."
    ),
    source=(
        "deepspeed/monitor/monitor.py:MonitorMaster",
        "deepspeed/profiling/flops_profiler/profiler.py:FlopsProfiler",
        "deepspeed/utils/comms_logging.py:CommsLogger",
        "deepspeed/runtime/config.py:DeepSpeedConfig._initialize_params",
    ),
    examples=(
        Example(
            '{"train_batch_size": 8}',
            '{"train_batch_size": 8, "tensorboard": {"enabled": true, "output_path": "logs", "job_name": "run"}}',
            '`tensorboard` is switched on, with `job_name` `"run"` and `output_path` `"logs"`',
            paths=("tensorboard.enabled", "tensorboard.output_path", "tensorboard.job_name"),
            effects=(Effect.OBSERVABILITY,),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8, "flops_profiler": {"enabled": true, "profile_step": 1}}',
            '{"train_batch_size": 8, "flops_profiler": {"enabled": true, "profile_step": 10, "detailed": false}}',
            "`flops_profiler` stays on, with `detailed` `false` instead of `true` and `profile_step` `10` instead",
        ),
        Example(
            '{"train_batch_size": 8, "wall_clock_breakdown": false}',
            '{"train_batch_size": 8, "wall_clock_breakdown": false, "flops_profiler": {"enabled": true}}',
            "`flops_profiler` is switched on; `wall_clock_breakdown` goes with it and prints times in every pass",
            paths=("flops_profiler.enabled", "wall_clock_breakdown"),
            effects=(Effect.SPEED, Effect.OBSERVABILITY),
        ),
        Example(
            '{"train_batch_size": 8, "wall_clock_breakdown": true, "flops_profiler": {"enabled": true}}',
            '{"train_batch_size": 8, "wall_clock_breakdown": true}',
            "`flops_profiler` is switched off",
            paths=("flops_profiler.enabled",),
        ),
        Example(
            '{"train_batch_size": 8, "comms_logger": {"verbose": true}}',
            '{"train_batch_size": 8}',
            "`comms_logger` is switched off",
            effects=(Effect.SPEED, Effect.OBSERVABILITY),
        ),
        Example(
            '{"train_batch_size": 8, "wandb": {"enabled": false, "project": "a"}}',
            '{"train_batch_size": 8, "wandb": {"enabled": false, "project": "b"}}',
            "",
        ),
    ),
)
def explain_observer(pair: Pair) -> Iterator[Explained]:
    """Yield one message for each section that watches training."""
    for section in _watching(pair):
        changes = [change for change in pair.live(section.path) if change.path not in pair.claimed]
        own = pair.change(section.path)
        paths = [*([section.path] if own is not None else []), *(change.path for change in changes)]
        if not paths:
            continue
        before, after = _is_on(pair.old, section), _is_on(pair.new, section)
        if before is after:
            turned = say("`{section}` stays on") if after else say("`{section}` stays off")
        else:
            turned = say("`{section}` is switched on") if after else say("`{section}` is switched off")
        turned = turned.format(section=section.path)
        inner = [change for change in changes if not change.path.endswith(".enabled")] if after else []
        told = say(" and ").join(
            _inner(section, change.path, change.old_meant, change.new_meant, new=not before) for change in inner
        )
        effects = {effect for path in paths for effect in effects_of(pair, path)} - {Effect.NONE}
        ordered = tuple(effect for effect in Effect if effect in effects)
        yield pair.says(
            *sorted(paths, key=lambda path: (not path.endswith("enabled"), path)),
            *(pair.touched(_TIMERS) if _takes_timers(pair, section) else ()),
            effects=ordered or (Effect.OBSERVABILITY,),
            severity=Severity.INFO,
            message=turned
            + (say(", with {told}", told=told) if told else "")
            + (say(_WITH_TIMERS[after], timers=_TIMERS) if _takes_timers(pair, section) else ""),
            brief=turned if before is not after else "",
        )


@explanation(
    "DF911",
    "progress-lines",
    summary="Progress lines are printed more or less often.",
    why=(
        "Every so many optimizer steps rank 0 prints the step, skipped steps, learning rate and momentum. Without a"
        " number, the default since 0.15.2, nothing is printed; timers that are on print at the same steps."
    ),
    source=("deepspeed/runtime/engine.py:_report_progress",),
    examples=(
        Example(
            '{"train_batch_size": 8, "steps_per_print": 10}',
            '{"train_batch_size": 8, "steps_per_print": 100}',
            "A progress line every 100 optimizer steps, previously every 10",
            paths=("steps_per_print",),
            effects=(Effect.OBSERVABILITY,),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8, "steps_per_print": 1}',
            '{"train_batch_size": 8}',
            "No progress lines any more, previously one every optimizer step",
        ),
        Example('{"train_batch_size": 8}', '{"train_batch_size": 16}', ""),
    ),
)
def explain_interval(pair: Pair) -> Iterator[Explained]:
    """Yield how often a progress line appears now."""
    if pair.change(_INTERVAL) is None:
        return
    before, after = (_often(value) for value in pair.values(_INTERVAL))
    if before and after:
        message = say(
            "A progress line {after}, previously {before}",
            after=after,
            before=_often(pair.old.value(_INTERVAL), short=True),
        )
    elif after:
        message = say("A progress line {after}, previously none", after=after)
    elif before:
        message = say("No progress lines any more, previously one {before}", before=before)
    else:
        return
    yield pair.says(_INTERVAL, effects=(Effect.OBSERVABILITY,), severity=Severity.INFO, message=message)


def _watching(pair: Pair) -> list[Key]:
    """Return the sections that only watch, of either release."""
    found = {key.path: key for side in (pair.old, pair.new) for key in side.known.sections()}
    return [key for key in found.values() if "observability" in key.affects and set(key.affects) <= _WATCHES]


def _is_on(side: Side, section: Key) -> bool:
    if section.acts_by_presence:
        return section.path in side.given
    switch = f"{section.path}.enabled"
    if side.known.key(switch) is None:
        switch = next((f"{key.path}.enabled" for key in side.known.children(section.path)), switch)
    return side.value(switch) is UNKNOWN or bool(side.value(switch))


def _takes_timers(pair: Pair, section: Key) -> bool:
    """Return whether the timers are on with the profiler and off without it, as the file does not ask for them."""
    if section.path != _PROFILER or pair.change(f"{_PROFILER}.enabled") is None:
        return False
    return all(side.written(_TIMERS) in {MISSING, None, False} for side in (pair.old, pair.new))


def _inner(section: Key, path: str, before: object, after: object, *, new: bool) -> str:
    name = path.removeprefix(f"{section.path}.")
    return (
        f"`{name}` {shown(after)}"
        if new
        else say("`{name}` {after} instead of {before}", name=name, after=shown(after), before=shown(before))
    )


def _often(value: object, *, short: bool = False) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value or value == float("inf"):
        return ""
    if value == 1:
        return say("every optimizer step")
    text = f"{value:g}"
    return say("every {value}", value=text) if short else say("every {value} optimizer steps", value=text)
