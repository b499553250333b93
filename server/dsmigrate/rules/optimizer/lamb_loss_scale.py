"""DS665: Lamb with a static loss scale."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.optimizer._shared import optimizer
from dsmigrate.rules.registry import rule


@rule(
    "DS665",
    "lamb-static-loss-scale",
    summary="Lamb with a static loss scale, which the engine refuses.",
    why="The engine asserts that the loss scale is dynamic whenever the type is Lamb. It looks at `fp16.loss_scale` "
    "alone: a value other than 0 is refused even while fp16 is off.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._do_sanity_check",),
    keys=("fp16.loss_scale", "optimizer.type"),
    examples=(
        Example(
            '{"train_batch_size": 8, "fp16": {"enabled": false, «"loss_scale": 128»}, '
            '"optimizer": {"type": "Lamb", "params": {"lr": 0.002}}}',
            fixed='{"train_batch_size": 8, "fp16": {"enabled": false, "loss_scale": 0}, '
            '"optimizer": {"type": "Lamb", "params": {"lr": 0.002}}}',
            accepted=None,  # Lamb has no kernel for the CPU
        ),
        Example(
            '{"train_batch_size": 8, "fp16": {"enabled": false, "loss_scale": 0}, '
            '"optimizer": {"type": "Lamb", "params": {"lr": 0.002}}}',
            accepted=None,  # Lamb has no kernel for the CPU
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a loss scale that is not 0."""
    facts = optimizer(context)
    scale = context.number("fp16.loss_scale")
    if facts is None or facts.name != "Lamb" or not scale or not context.has("fp16.loss_scale"):
        return
    yield context.finding(
        "fp16.loss_scale",
        say(
            "Lamb needs a dynamic loss scale, and {scale} is a static one: the engine refuses to start, with "
            "fp16 off too; 0 makes it dynamic",
            scale=json_text(scale),
        ),
        part="member",
        fixes=[context.replace("fp16.loss_scale", 0, say("Make the loss scale dynamic (0)"), safe=False)],
        related=[("optimizer.type", say("Lamb is asked for here"))],
    )
