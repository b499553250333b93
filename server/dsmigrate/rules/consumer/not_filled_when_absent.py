"""DS816: `gradient_clipping` left out, which neither the Trainer nor Accelerate makes up for."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import mark, say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_CLIPPING = {
    Consumer.TRANSFORMERS: mark("whatever `max_grad_norm` says"),
    Consumer.ACCELERATE: mark("and `accelerator.clip_grad_norm_` clips nothing under DeepSpeed"),
}


@rule(
    "DS816",
    "absent-is-not-filled",
    summary="`gradient_clipping` left out: the consumer fills only what is there, so that DeepSpeed's default counts.",
    why='Only `"auto"` is replaced, an absent key is not. Without `gradient_clipping` DeepSpeed clips at its own '
    "default (1.0 since 0.19.3, no clipping before), whatever `TrainingArguments.max_grad_norm` says; under "
    "Accelerate `clip_grad_norm_` only returns the norm.",
    severity=Severity.HINT,
    effect=Effect.OVERRIDDEN,
    source=(
        "transformers/integrations/deepspeed.py:HfTrainerDeepSpeedConfig.fill_match",
        "accelerate/accelerator.py:Accelerator.clip_grad_norm_",
    ),
    consumers=(Consumer.TRANSFORMERS, Consumer.ACCELERATE),
    keys=("gradient_clipping",),
    pains=(22,),
    examples=(
        Example(
            '«{»"train_batch_size": "auto", "zero_optimization": {"stage": 2}}',
            fixed='{"train_batch_size": "auto", "zero_optimization": {"stage": 2}, "gradient_clipping": "auto"}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '«{»"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "gradient_clipping": "auto"}',
            consumer=Consumer.ACCELERATE,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "gradient_clipping": 0.0}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example('{"train_batch_size": 8}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding when the key is absent."""
    if not context.entries or context.has("gradient_clipping"):
        return
    default = json_text(context.known.default("gradient_clipping"))
    limit = say("clips at {default}", default=default) if default != "0.0" else say("does not clip")
    yield context.finding(
        ("gradient_clipping",),
        say(
            "Without `gradient_clipping` DeepSpeed {limit}, {clipping}",
            limit=limit,
            clipping=say(_CLIPPING[context.consumer]),
        ),
        fixes=[context.insert(("gradient_clipping",), "auto", say('Add `gradient_clipping: "auto"`'), safe=False)],
    )
