"""DS680: an optimizer that can be named and cannot step."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.optimizer._shared import optimizer
from dsmigrate.rules.registry import rule


@rule(
    "DS680",
    "optimizer-cannot-step",
    summary="An optimizer of torch that the engine builds and cannot step.",
    why="The step of LBFGS re-evaluates the loss through a closure, and the engine calls `step()` without one: "
    "`TypeError: LBFGS.step() missing 1 required positional argument`. SparseAdam takes sparse gradients only "
    "and raises a `RuntimeError` on the first dense one; ZeRO has nothing but dense slices.",
    severity=Severity.ERROR,
    effect=Effect.CRASH,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._take_model_step",),
    keys=("optimizer.type",),
    examples=(
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": «"LBFGS"», "params": {"lr": 1}}}',
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": «"SparseAdam"», "params": {"lr": 1e-3}}}',
            accepted=None,  # the engine is built, its first step fails
        ),
        Example('{"train_batch_size": 8, "optimizer": {"type": "Adagrad", "params": {"lr": 1e-3}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for the two classes."""
    facts = optimizer(context)
    if facts is None:
        return
    if facts.name == "LBFGS":
        yield context.finding(
            "optimizer.type",
            say(
                "DeepSpeed cannot run `LBFGS`: its step needs a closure, and the engine gives none, so the first "
                "step fails"
            ),
        )
    elif facts.name == "SparseAdam":
        sparse_only = not context.stage
        yield context.finding(
            "optimizer.type",
            say("`SparseAdam` takes sparse gradients only and fails on the first dense one")
            + (
                say("; it runs for a model of sparse embeddings alone")
                if sparse_only
                else say(", and ZeRO has no others")
            ),
            severity=Severity.WARNING if sparse_only else None,
        )
