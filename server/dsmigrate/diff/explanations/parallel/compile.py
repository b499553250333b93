"""DeepCompile and the other settings of the `compile` section."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.features import Feature, told
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import mark

_DEEP = Feature(
    section="compile",
    switch="compile.deepcompile",
    begins=mark(
        "`engine.compile()` builds ZeRO's communication into the compiled graph now: another order of "
        "gathers and reductions, another memory peak, the same training"
    ),
    ends=mark("`engine.compile()` is plain `torch.compile` again: ZeRO communicates from its hooks"),
    runs=mark("DeepCompile works otherwise"),
    brief="DeepCompile",
    advice=mark("Nothing happens unless the script calls `engine.compile()`"),
)


@explanation(
    "DF804",
    "deepcompile",
    summary="DeepCompile goes on or off, or arranges the compiled graph otherwise.",
    why=(
        "The section prepares `engine.compile()`, which the script must call. With `deepcompile` gathers, releases and"
        " reductions become operations of the graph; without it the call is plain `torch.compile`."
    ),
    source=("deepspeed/compile/config.py:CompileConfig", "deepspeed/runtime/engine.py:DeepSpeedEngine.compile"),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3}, "compile": {"deepcompile": true}}',
            "`engine.compile()` builds ZeRO's communication into the compiled graph now",
            paths=("compile.deepcompile",),
            effects=(Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3}, "compile": {"deepcompile": true}}',
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3}, "compile": {"deepcompile": true,'
            ' "offload_opt_states": true}}',
            "DeepCompile works otherwise: `offload_opt_states` false → true (parks master weights and Adam moments in"
            " pinned",
            effects=(Effect.MEMORY, Effect.SPEED),
        ),
        Example(
            '{"train_batch_size": 8, "compile": {"deepcompile": false, "offload_opt_states": true}}',
            '{"train_batch_size": 8}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what `engine.compile()` does now."""
    yield from told(pair, _DEEP, effects=(Effect.MEMORY, Effect.COMMUNICATION, Effect.SPEED), severity=Severity.INFO)
