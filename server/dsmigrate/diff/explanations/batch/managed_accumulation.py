"""Who counts the micro-steps of an optimizer step: the engine or the loop."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.languages import say
from dsmigrate.rules.batch._shared import STEPS, text

_KEY = "managed_gradient_accumulation"


@explanation(
    "DF203",
    "managed-accumulation",
    summary="The engine begins or ends to count micro-steps by itself.",
    why=(
        "Managed, the engine counts the calls of `step()` and updates on every `gradient_accumulation_steps`-th."
        " Unmanaged, every `step()` reduces, clips and updates, however many backward passes went before; `backward()`"
        " divides by `gradient_accumulation_steps` in either mode."
    ),
    source=(
        "deepspeed/runtime/engine.py:DeepSpeedEngine.is_gradient_accumulation_boundary",
        "deepspeed/runtime/engine.py:DeepSpeedEngine.step",
    ),
    examples=(
        Example(
            '{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4}',
            '{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,'
            ' "managed_gradient_accumulation": false, "zero_optimization": {"stage": 0}}',
            "Every `engine.step()` updates the weights now; previously only each 4th did",
            paths=(_KEY,),
            effects=(Effect.NUMERICS, Effect.COMMUNICATION),
            severity=Severity.WARNING,
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 2, "managed_gradient_accumulation": false}',
            '{"train_micro_batch_size_per_gpu": 2}',
            "The engine counts the micro-steps now: each `engine.step()` updates the weights, and several backward"
            " passes before it go wrong at ZeRO 1 and 2",
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": 2}',
            '{"train_micro_batch_size_per_gpu": 2, "managed_gradient_accumulation": true}',
            "",
        ),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what a call of ``step`` does now."""
    before, after = pair.old.is_on(_KEY), pair.new.is_on(_KEY)
    if pair.change(_KEY) is None or before is after:
        return
    steps = (pair.new if after else pair.old).number(STEPS)
    every = say("each {ordinal}", ordinal=_ordinal(steps)) if steps is None or steps > 1 else say("each")
    only = say("only ") if steps is None or steps > 1 else ""
    if after:
        message = say(
            "The engine counts the micro-steps now: {only}{every} `engine.step()` updates the weights",
            only=only,
            every=every,
        )
        message += "" if only else say(", and several backward passes before it go wrong at ZeRO 1 and 2")
    elif only:
        message = say(
            "Every `engine.step()` updates the weights now; previously {only}{every} did", only=only, every=every
        )
    else:
        message = say(
            "Every `engine.step()` updates the weights, however many backward passes went before; with "
            "accumulation 1 that is new only for loops that step after several"
        )
    still = say("`backward()` still divides by `gradient_accumulation_steps`: leave it at 1 and divide in the script")
    yield pair.says(
        _KEY,
        effects=(Effect.NUMERICS, Effect.COMMUNICATION),
        severity=Severity.WARNING,
        message=message,
        advice=still if not after and only else "",
        brief=say("micro-steps counted by the engine") if after else say("micro-steps counted by the loop"),
    )


def _ordinal(steps: float | None) -> str:
    if steps is None:
        return say("n-th")
    return say("{count}{en_th}", count=text(steps), en_th={2: "nd", 3: "rd"}.get(int(steps), "th"))
