"""DS905: settings of the flops profiler with which its table of modules stays empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dsmigrate.languages import mark, say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_LIMITS: dict[str, tuple[Callable[[float], bool], str]] = {
    "module_depth": (
        lambda depth: depth == 0 or depth < -1,
        mark("the table by depth stays empty; -1 is the whole model"),
    ),
    "top_modules": (lambda count: count == 0, mark("the table names no module")),
}
"""Negative numbers elsewhere are told with those of other sections."""


@rule(
    "DS905",
    "flops-profiler-limits",
    summary="A number of the flops profiler with which its table of modules is empty.",
    why="DeepSpeed takes any number here. The table of modules has the depths below `module_depth`, so 0 prints "
    "none, and names `top_modules` classes at each.",
    severity=Severity.WARNING,
    effect=Effect.IGNORED,
    source=("deepspeed/profiling/flops_profiler/profiler.py:FlopsProfiler.print_model_aggregated_profile",),
    keys=tuple(f"flops_profiler.{name}" for name in _LIMITS),
    examples=(
        Example(
            '{"train_batch_size": 8, "flops_profiler": {"enabled": true, "top_modules": «0», "module_depth": «0»}}',
            fixed='{"train_batch_size": 8, "flops_profiler": {"enabled": true}}',
        ),
        Example('{"train_batch_size": 8, "flops_profiler": {"enabled": true, "profile_step": 0, "module_depth": -1}}'),
        Example('{"train_batch_size": 8, "flops_profiler": {"module_depth": 0}}'),
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
                say("With {path} at {value} {result}", path=shown(path), value=value, result=say(result)),
                fixes=[context.remove(path, say("Remove {path} and take its default", path=shown(path)), safe=False)],
            )
