"""DS465: a pipeline beside ZeRO 2 or 3."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import STAGE, section


@rule(
    "DS465",
    "pipeline-stage",
    summary="A `pipeline` section at ZeRO stage 2 or 3, which the pipeline engine refuses.",
    why="The section is read by the pipeline engine alone, and that engine asserts stage 0 or 1. With any other "
    "model the section "
    "is ignored.",
    severity=Severity.INFO,
    effect=Effect.IGNORED,
    source=("deepspeed/runtime/pipe/engine.py:PipelineEngine",),
    keys=("pipeline",),
    examples=(
        Example(
            '{"train_batch_size": 1, «"pipeline"»: {"activation_checkpoint_interval": 1}, "zero_optimization": '
            '{"stage": 2}}\n'
        ),
        Example(
            '{"train_batch_size": 1, "pipeline": {"activation_checkpoint_interval": 1}, "zero_optimization": '
            '{"stage": 1}}\n'
        ),
        Example('{"train_batch_size": 1, "pipeline": {}, "zero_optimization": {"stage": 3}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at a section with keys."""
    entry = section(context, "pipeline")
    if entry is None or context.stage not in {2, 3} or not context.raw("pipeline"):
        return
    yield context.finding(
        entry,
        say(
            "ZeRO stage {stage} is refused for pipeline modules, and other models do not read this section",
            stage=context.stage,
        ),
        part="key",
        related=[(STAGE, say("pipelines take stage 0 or 1"))] if context.has(STAGE) else [],
    )
