"""DS670: Muon at ZeRO stage 3 with reduce-scatter."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.optimizer._shared import optimizer
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import before

_STAGE_3_SINCE = "0.18.9"


@rule(
    "DS670",
    "muon-at-stage-3",
    summary="Muon at ZeRO stage 3 while `reduce_scatter` is on, as it is by default.",
    why="Muon needs whole gradients of its matrices, so stage 3 raises `ValueError: Muon and reduce scatter cannot be "
    "used together` when the engine is built; `zero_quantized_gradients`, which needs `reduce_scatter`, is refused "
    "with it. Before 0.18.9 stage 3 knows nothing of Muon and hands it partitioned slices.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/zero/stage3.py:DeepSpeedZeroOptimizer_Stage3.__init__",),
    since="0.17.6",
    keys=("zero_optimization.reduce_scatter", "optimizer.type"),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {«"stage": 3»}, '
            '"optimizer": {"type": "Muon", "params": {"muon_lr": 0.02, "adam_lr": 3e-4}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 3, "reduce_scatter": false}, '
            '"optimizer": {"type": "Muon", "params": {"muon_lr": 0.02, "adam_lr": 3e-4}}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, «"reduce_scatter": true»}, '
            '"optimizer": {"type": "Muon", "params": {}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 3, "reduce_scatter": false}, '
            '"optimizer": {"type": "Muon", "params": {}}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {«"stage": 3»}, "optimizer": {"type": "Muon", "params": {}}}',
            version="0.18.8",
            accepted=None,  # a verdict of another release
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "optimizer": {"type": "Muon", "params": {}}}',
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for Muon at stage 3, at what decides."""
    facts = optimizer(context)
    if facts is None or facts.name != "Muon" or context.stage != 3:
        return
    if before(context, _STAGE_3_SINCE):
        yield context.finding(
            "zero_optimization.stage",
            say(
                "DeepSpeed {known_version} does not support Muon at stage 3 (it came with {stage_3_since}): the "
                "engine refuses to start",
                known_version=context.known.version,
                stage_3_since=_STAGE_3_SINCE,
            ),
            part="member",
        )
        return
    if not context.is_on("zero_optimization.reduce_scatter"):
        return
    key = "zero_optimization.reduce_scatter"
    title = say("Set `reduce_scatter` to false")
    given = context.has(key)
    yield context.finding(
        key if given else "zero_optimization.stage",
        say("Muon at stage 3 needs `reduce_scatter` false, and the default is true: the engine refuses to start"),
        part="member",
        fixes=[
            context.replace(key, value=False, title=title, safe=True)
            if given
            else context.insert(("zero_optimization", "reduce_scatter"), value=False, title=title, safe=True)
        ],
    )
