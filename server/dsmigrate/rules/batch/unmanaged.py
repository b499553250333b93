"""DS240: a hand-counted accumulation with features that need the engine's count."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import given, has_section
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_KEY = "managed_gradient_accumulation"
_OVERLAP = "zero_optimization.overlap_comm"
_COMPILE = "compile.deepcompile"


@rule(
    "DS240",
    "unmanaged-accumulation",
    summary="`managed_gradient_accumulation` false with a feature that DeepSpeed refuses beside it.",
    why="The engine refuses the mode with `zero_optimization.overlap_comm` below stage 2, with DeepCompile and with a "
    "pipeline, when it is built. Its message names stage 2 only, but stage 3 passes.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/engine.py:_do_sanity_check",),
    since="0.19.4",
    keys=(_KEY,),
    examples=(
        Example(
            '{"train_batch_size": 1, "managed_gradient_accumulation": «false», '
            '"zero_optimization": {"stage": 1, "overlap_comm": true}}\n',
            fixed='{"train_batch_size": 1, "managed_gradient_accumulation": true, '
            '"zero_optimization": {"stage": 1, "overlap_comm": true}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "managed_gradient_accumulation": «false», "compile": {"deepcompile": true}}\n',
            fixed='{"train_batch_size": 1, "managed_gradient_accumulation": true, "compile": {"deepcompile": true}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "managed_gradient_accumulation": «false», '
            '"pipeline": {"activation_checkpoint_interval": 1}}\n',
            fixed='{"train_batch_size": 1, "managed_gradient_accumulation": true, '
            '"pipeline": {"activation_checkpoint_interval": 1}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "managed_gradient_accumulation": false, '
            '"zero_optimization": {"stage": 2, "overlap_comm": true}}\n'
        ),
        Example('{"train_batch_size": 1, "managed_gradient_accumulation": false, "zero_optimization": {"stage": 3}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each feature that excludes the mode."""
    if given(context, _KEY) is None or context.is_on(_KEY) is not False:
        return
    fix = context.replace(_KEY, True, say("Let the engine count"), safe=False)  # noqa: FBT003 - the value of the key
    if context.stage in {0, 1} and context.is_on(_OVERLAP):
        yield context.finding(
            _KEY,
            say("false is refused together with `{overlap}` at stage {stage}", overlap=_OVERLAP, stage=context.stage),
            fixes=[fix],
            related=[(_OVERLAP, say("switched on here"))],
        )
    if context.is_on(_COMPILE):
        yield context.finding(
            _KEY,
            say("false is refused together with `{compile}`", compile=_COMPILE),
            fixes=[fix],
            related=[(_COMPILE, say("switched on here"))],
        )
    if has_section(context, "pipeline"):
        yield context.finding(
            _KEY,
            say("false is refused for the pipeline engine, which the section `pipeline` is for"),
            severity=Severity.WARNING,
            effect=Effect.CRASH,
            fixes=[fix],
        )
