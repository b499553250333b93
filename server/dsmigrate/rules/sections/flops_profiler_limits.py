"""DS905: settings of the flops profiler with which it reports nothing, or nonsense."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_LIMITS: dict[str, tuple[Callable[[float], bool], str]] = {
    "profile_step": (lambda step: step < 0, "no step has that number, so nothing is ever profiled"),
    "module_depth": (lambda depth: depth == 0 or depth < -1, "the table by depth stays empty; -1 is the whole model"),
    "top_modules": (lambda count: count < 1, "the table names no module"),
    "recompute_fwd_factor": (
        lambda factor: factor < 0,
        "the rates count a backward pass of less than two forward passes",
    ),
}


@rule(
    "DS905",
    "flops-profiler-limits",
    summary="A number of the flops profiler with which its report is empty or wrong.",
    why="DeepSpeed takes any number here. `profile_step` is compared with the count of finished steps, which starts "
    "at 0; the table of modules has the depths below `module_depth`, so 0 prints none; `recompute_fwd_factor` "
    "is added to the 2 forward passes that a backward pass counts for.",
    severity=Severity.WARNING,
    effect=Effect.IGNORED,
    source=(
        "deepspeed/profiling/flops_profiler/profiler.py:FlopsProfiler.print_model_aggregated_profile",
        "deepspeed/runtime/engine.py:DeepSpeedEngine._forward_prologue",
    ),
    keys=tuple(f"flops_profiler.{name}" for name in _LIMITS),
    examples=(
        Example(
            '{"train_batch_size": 8, "flops_profiler": {"enabled": true, "profile_step": «-1», "module_depth": «0»}}',
            fixed='{"train_batch_size": 8, "flops_profiler": {"enabled": true}}',
        ),
        Example('{"train_batch_size": 8, "flops_profiler": {"enabled": true, "profile_step": 0, "module_depth": -1}}'),
        Example('{"train_batch_size": 8, "flops_profiler": {"profile_step": -1}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each number out of its sensible range while the profiler is on."""
    if not context.is_on("flops_profiler.enabled"):
        return
    for name, (is_wrong, result) in _LIMITS.items():
        path = f"flops_profiler.{name}"
        value = context.number(path)
        if context.has(path) and value is not None and is_wrong(value):
            yield context.finding(
                path,
                f"With {shown(path)} at {value} {result}",
                fixes=[context.remove(path, f"Remove {shown(path)} and take its default", safe=False)],
            )
