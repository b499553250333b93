"""DS660: an optimizer under ZeRO that ZeRO takes on request only."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.optimizer._shared import optimizer
from dsmigrate.rules.registry import rule

_PER_TENSOR = frozenset({"Lamb", "Adafactor"})
"""Types whose update looks at a whole tensor, which under ZeRO is a slice of many layers."""


@rule(
    "DS660",
    "untested-optimizer",
    summary="An optimizer under ZeRO that needs `zero_allow_untested_optimizer`.",
    why="ZeRO takes the Adam family, Adagrad, Lion and Muon. Any other class is an `AssertionError: You are using an "
    "untested ZeRO Optimizer`, unless `zero_allow_untested_optimizer` is true; it is a warning then. Element-wise "
    "optimizers such as SGD or RMSprop compute the same under ZeRO. Lamb and Adafactor do not: the tensors they "
    "see are flat slices of many layers, so their norms and factors are of something else.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine._do_optimizer_sanity_check",
        "deepspeed/runtime/zero/utils.py:is_zero_supported_optimizer",
    ),
    keys=("optimizer.type", "zero_allow_untested_optimizer", "zero_optimization.stage"),
    pains=(9,),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, '
            '"optimizer": {"type": «"SGD"», "params": {"lr": 0.1}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}, '
            '"optimizer": {"type": "SGD", "params": {"lr": 0.1}}, "zero_allow_untested_optimizer": true}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_allow_untested_optimizer": false, "zero_optimization": {"stage": 3}, '
            '"optimizer": {"type": «"RMSprop"», "params": {"lr": 0.1}}}',
            fixed='{"train_batch_size": 8, "zero_allow_untested_optimizer": true, "zero_optimization": {"stage": 3}, '
            '"optimizer": {"type": "RMSprop", "params": {"lr": 0.1}}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": true, '
            '"optimizer": {"type": «"Lamb"», "params": {"lr": 0.001}}}',
            accepted=None,  # Lamb has no kernel for the CPU
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 0}, '
            '"optimizer": {"type": "SGD", "params": {"lr": 0.1}}}'
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, '
            '"optimizer": {"type": "AdamW", "params": {"lr": 0.1}}}'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for an untested type at a stage above 0."""
    facts = optimizer(context)
    if facts is None or not facts.untested or not context.stage:
        return
    allowed = context.raw("zero_allow_untested_optimizer")
    if allowed and facts.name in _PER_TENSOR:
        yield context.finding(
            "optimizer.type",
            say(
                "`{facts_name}` works per tensor, and under ZeRO a tensor is a flat slice of many layers: it "
                "runs, but it is another algorithm; use stage 0 or `AdamW`",
                facts_name=facts.name,
            ),
            severity=Severity.WARNING,
            effect=Effect.RISKY,
        )
    if allowed:
        return
    key = "zero_allow_untested_optimizer"
    title = say("Set `{key}`", key=key)
    safe = facts.name not in _PER_TENSOR
    yield context.finding(
        "optimizer.type",
        say(
            "ZeRO stage {stage} takes `{facts_name}` only with `{key}` true: the engine refuses to start",
            stage=context.stage,
            facts_name=facts.name,
            key=key,
        ),
        fixes=[
            context.replace(key, value=True, title=title, safe=safe)
            if context.has(key)
            else context.insert((key,), value=True, title=title, safe=safe),
        ],
    )
