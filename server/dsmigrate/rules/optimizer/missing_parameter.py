"""DS635: a parameter without which the optimizer cannot be built."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.optimizer._shared import optimizer
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import given


@rule(
    "DS635",
    "missing-optimizer-parameter",
    summary="A parameter is missing without which the optimizer cannot be built.",
    why="The optimizers of the package mup read `lr` of every parameter group and have no default for it: "
    "without it the engine stops with a bare `KeyError: 'lr'`.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._configure_basic_optimizer",),
    keys=("optimizer.params",),
    examples=(
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": «"MuAdam"», "params": {"eps": 1e-8}}}',
            accepted=None,  # needs the package mup
        ),
        Example('{"train_batch_size": 8, "optimizer": {"type": "MuAdam", "params": {"lr": 1e-3}}}', accepted=None),
        # None: it needs the package mup
        Example('{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"eps": 1e-8}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each required parameter that is not there."""
    facts = optimizer(context)
    params = context.entry("optimizer.params")
    if facts is None or (params is not None and not isinstance(params.node, Object)):
        return
    for name, parameter in facts.parameters.items():
        if parameter.required and name not in given(context, "optimizer"):
            yield context.finding(
                "optimizer.type",
                say(
                    "`{facts_name}` has no default for `{name}`: the engine cannot build it; write "
                    "`optimizer.params.{name}`",
                    facts_name=facts.name,
                    name=name,
                ),
            )
