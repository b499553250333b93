"""DS492: DeepCompile passes at a stage that they do not cover."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import STAGE, given, switched_on

_DEEP = "compile.deepcompile"
_PASSES = "compile.passes"
_SIZE = "tensor_parallel.autotp_size"


@rule(
    "DS492",
    "compile-stage",
    summary="DeepCompile at a ZeRO stage, or with a size, that its pass does not cover.",
    why="The ZeRO passes are for stage 1 to 3, AutoSP is for stage 0 and 1, AutoTP needs `autotp_size` above 1. "
    "What does not fit "
    "is logged at INFO, and plain `torch.compile` runs instead. AutoTP beside another pass is refused by "
    "`engine.compile()`.",
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
    elif context.stage == 0:
        told = say("DeepCompile is for ZeRO stage 1 to 3; at stage 0 plain `torch.compile` runs instead")
        yield context.finding(entry, told, related=related)
