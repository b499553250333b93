"""DS685: an optimizer of the package mup."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.optimizer._shared import optimizer
from dsmigrate.rules.registry import rule


@rule(
    "DS685",
    "mup-package",
    summary="An optimizer that needs the package mup and a model prepared with it.",
    why="Without the package the engine logs an error and dies with an `UnboundLocalError`; without "
    "`mup.set_base_shapes` on the model, mup asserts about `infshape`. DeepSpeed does not install the package.",
    severity=Severity.HINT,
    effect=Effect.RISKY,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._configure_basic_optimizer",),
    keys=("optimizer.type",),
    examples=(
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": «"MuAdamW"», "params": {"lr": 1e-3}}}',
            accepted=None,  # depends on the package mup
        ),
        Example('{"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"lr": 1e-3}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for the optimizers of mup."""
    facts = optimizer(context)
    if facts is not None and any("built by mup" in built for built in facts.builds):
        yield context.finding(
            "optimizer.type",
            say(
                "`{facts_name}` needs the package mup (`pip install mup`) and `mup.set_base_shapes` on the model",
                facts_name=facts.name,
            ),
        )
