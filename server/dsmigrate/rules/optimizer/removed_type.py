"""DS605: an optimizer of the 1-bit family, which is gone."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import edits
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import is_here, parameters, written_type

_INSTEAD = {"OneBitAdam": "AdamW", "OneBitLamb": "Lamb", "ZeroOneAdam": "AdamW"}


@rule(
    "DS605",
    "removed-optimizer",
    summary="An optimizer type that earlier releases of DeepSpeed had and this one does not.",
    why="DeepSpeed 0.19.7 took OneBitAdam, OneBitLamb and ZeroOneAdam out. The config is still read, the engine then "
    "stops with `AssertionError: OneBitAdam is not a supported DeepSpeed Optimizer`. `AdamW` and `Lamb` are the "
    "uncompressed optimizers behind them; the parameters of the compression have no place there.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._is_supported_optimizer",),
    keys=("optimizer.type",),
    pains=(37,),
    examples=(
        Example(
            """{
  "train_batch_size": 8,
  "optimizer": {
    "type": «"OneBitAdam"»,
    "params": {
      "weight_decay": 0.01,
      "freeze_step": 400,
      "cuda_aware": true
    }
  }
}
""",
            fixed="""{
  "train_batch_size": 8,
  "optimizer": {
    "type": "AdamW",
    "params": {
      "weight_decay": 0.01
    }
  }
}
""",
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "OneBitAdam", "params": {"lr": 2e-4}}}',
            version="0.19.6",
            accepted=None,  # a verdict of another release
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a type that is gone."""
    written = written_type(context, "optimizer")
    facts = None if written is None else context.known.optimizer(written)
    if facts is None or facts.until is None or is_here(facts, context):
        return
    instead = _INSTEAD.get(facts.name)
    advice = say("; `{instead}` is the same without compression", instead=instead) if instead else ""
    if context.stage:
        advice += say("; earlier ones refuse it with ZeRO")
    yield context.finding(
        "optimizer.type",
        say(
            "DeepSpeed {until} and later have no `{facts_name}`: the engine refuses to start{advice}",
            until=facts.until,
            facts_name=facts.name,
            advice=advice,
        ),
        fixes=[_fix(context, instead)] if instead else (),
    )


def _fix(context: Context, instead: str) -> Fix | None:
    """Return the fix that takes the uncompressed type, with those of the parameters that it has and that hold."""
    target = context.known.optimizer(instead)
    assert target is not None  # noqa: S101 - a name of the table
    gone = [entry.path for entry in parameters(context, "optimizer") if entry.name not in target.parameters]
    type_path = context.path_of("optimizer.type")
    steps = [
        lambda document: edits.replace(document, type_path, instead),
        *(lambda document, path=path: edits.remove(document, path) for path in gone),
    ]
    return context.fix_all(say("Use `{instead}`", instead=instead), steps, safe=False)
