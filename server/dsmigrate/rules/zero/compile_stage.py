"""DS492: DeepCompile passes at a stage that they do not cover."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsmigrate.knowledge.versions import order
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, Entry, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import STAGE, given, switched_on

_DEEP = "compile.deepcompile"
_PASSES = "compile.passes"
_SIZE = "tensor_parallel.autotp_size"
_LOGGED = "0.17.1"
"""The first release that goes on with plain ``torch.compile`` at a stage without a pass."""
_TWO = "0.17.2"
"""The first release with a pass for stage 2."""


@rule(
    "DS492",
    "compile-stage",
    summary="DeepCompile at a ZeRO stage, or with a size, that its pass does not cover.",
    why="The ZeRO passes are for stage 1 to 3, AutoSP is for stage 0 and 1, AutoTP needs `autotp_size` above 1. "
    "What does not fit "
    "is logged at INFO, and plain `torch.compile` runs instead. AutoTP beside another pass is refused by "
    "`engine.compile()`. Before 0.17.2 stage 2 has no pass either, and before 0.17.1 `engine.compile()` raises an "
    "AssertionError at both stages.",
    severity=Severity.WARNING,
    effect=Effect.IGNORED,
    source=("deepspeed/runtime/engine.py:get_deepspeed_compile_backend",),
    keys=(_DEEP, _PASSES),
    examples=(
        Example('{"train_batch_size": 1, "compile": {"deepcompile": «true»}, "zero_optimization": {"stage": 0}}\n'),
        Example(
            '{"train_batch_size": 1, "compile": {"deepcompile": true, "passes": «["autosp"]»}, '
            '"zero_optimization": {"stage": 3}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "compile": {"deepcompile": true, "passes": «["autotp", "z1"]»}, '
            '"zero_optimization": {"stage": 1}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "compile": {"deepcompile": true, "passes": ["autosp"]}, '
            '"zero_optimization": {"stage": 0}}\n'
        ),
        Example('{"train_batch_size": 1, "compile": {"deepcompile": true}, "zero_optimization": {"stage": 3}}\n'),
        Example(
            '{"train_batch_size": 1, "compile": {"deepcompile": «true»}, "zero_optimization": {"stage": 2}}\n',
            version="0.16.9",
        ),
        Example(
            '{"train_batch_size": 1, "compile": {"deepcompile": «true»}, "zero_optimization": {"stage": 2}}\n',
            version="0.17.1",
        ),
        Example('{"train_batch_size": 1, "compile": {"deepcompile": true}, "zero_optimization": {"stage": 2}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the passes, or at the switch."""
    entry = switched_on(context, _DEEP)
    if entry is None or context.stage is None:
        return
    raw = context.raw(_PASSES) if given(context, _PASSES) is not None else None
    passes = raw if isinstance(raw, list) else []
    related = [(STAGE, say("the stage"))] if context.has(STAGE) else []
    if "autotp" in passes:
        size = context.number(_SIZE)
        if len(set(passes)) > 1:
            yield context.finding(
                _PASSES,
                say("`engine.compile()` refuses autotp together with other passes"),
                severity=Severity.ERROR,
                effect=Effect.CRASH,
            )
        elif size is not None and size <= 1:
            yield context.finding(
                _PASSES, say("autotp needs {size} above 1; plain `torch.compile` runs instead", size=shown(_SIZE))
            )
    elif "autosp" in passes:
        if context.stage > 1:
            told = say(
                "autosp is for ZeRO stage 0 and 1; at stage {stage} plain `torch.compile` runs instead",
                stage=context.stage,
            )
            yield context.finding(_PASSES, told, related=related)
    else:
        yield from _of_the_stage(context, entry, related)


def _of_the_stage(context: Context, entry: Entry, related: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    """Yield a finding at a stage that the release has no pass for."""
    now = order(context.known.version)
    has_two = now >= order(_TWO)
    if context.stage in ({1, 2, 3} if has_two else {1, 3}):
        return
    if now < order(_LOGGED):
        told = say(
            "DeepCompile is for ZeRO stage 1 and 3: at stage {stage} `engine.compile()` raises an AssertionError",
            stage=context.stage,
        )
        yield context.finding(entry, told, severity=Severity.ERROR, effect=Effect.CRASH, related=related)
        return
    stages = say("1 to 3") if has_two else say("1 and 3")
    told = say(
        "DeepCompile is for ZeRO stage {stages}; at stage {stage} plain `torch.compile` runs instead",
        stages=stages,
        stage=context.stage,
    )
    yield context.finding(entry, told, related=related)
