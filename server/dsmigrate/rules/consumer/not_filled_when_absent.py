"""DS816: `gradient_clipping` left out, which neither the Trainer nor Accelerate makes up for."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.knowledge.wording import json_text
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_CLIPPING = {
    Consumer.TRANSFORMERS: "whatever `max_grad_norm` says",
    Consumer.ACCELERATE: "and `accelerator.clip_grad_norm_` clips nothing under DeepSpeed",
}


@rule(
    "DS816",
    "absent-is-not-filled",
    summary="A key left out that the consumer fills only when it is there: gradient clipping, accumulation steps.",
    why='Only `"auto"` is replaced, an absent key is not. Without `gradient_clipping` DeepSpeed clips at its own '
    "default (1.0 since 0.19.3, no clipping before), whatever `TrainingArguments.max_grad_norm` says; under "
    "Accelerate `clip_grad_norm_` only returns the norm. Without `gradient_accumulation_steps` Accelerate's "
    "plugin writes 1 and replaces the argument of `Accelerator` with it.",
    severity=Severity.HINT,
    effect=Effect.OVERRIDDEN,
    source=(
        "transformers/integrations/deepspeed.py:HfTrainerDeepSpeedConfig.fill_match",
        "accelerate/accelerator.py:Accelerator.clip_grad_norm_",
        "accelerate/utils/dataclasses.py:DeepSpeedPlugin.__post_init__",
    ),
    consumers=(Consumer.TRANSFORMERS, Consumer.ACCELERATE),
    keys=("gradient_clipping", "gradient_accumulation_steps"),
    pains=(22,),
    examples=(
        Example(
            '«{»"train_batch_size": "auto", "zero_optimization": {"stage": 2}}',
            fixed='{"train_batch_size": "auto", "zero_optimization": {"stage": 2}, "gradient_clipping": "auto"}',
            consumer=Consumer.TRANSFORMERS,
            accepted=False,
        ),
        Example(
            '«{»"train_batch_size": 8, "zero_optimization": {"stage": 2}, "gradient_clipping": 0.5}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "gradient_clipping": 0.5, '
            '"gradient_accumulation_steps": "auto"}',
            consumer=Consumer.ACCELERATE,
            accepted=False,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "gradient_clipping": 0.0}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example('{"train_batch_size": 8}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each key that is absent although the program's own setting looks as if it counted."""
    if not context.entries:
        return
    if not context.has("gradient_clipping"):
        default = json_text(context.known.default("gradient_clipping"))
        limit = f"clips at {default}" if default != "0.0" else "does not clip"
        yield _absent(
            context,
            "gradient_clipping",
            f"Without `gradient_clipping` DeepSpeed {limit}, {_CLIPPING[context.consumer]}",
        )
    if context.consumer is Consumer.ACCELERATE and not context.has("gradient_accumulation_steps"):
        yield _absent(
            context,
            "gradient_accumulation_steps",
            "Without `gradient_accumulation_steps` Accelerate takes 1, whatever `Accelerator(…)` was given",
        )


def _absent(context: Context, key: str, message: str) -> Finding:
    return context.finding((key,), message, fixes=[context.insert((key,), "auto", f'Add `{key}: "auto"`', safe=False)])
