"""DS820: `bfloat16` under Transformers and Accelerate, which know `bf16` alone."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.consumer._shared import AUTO
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS820",
    "old-name-is-not-read",
    summary="`bfloat16` under Transformers or Accelerate, which add `bf16`: DeepSpeed never reads the old name.",
    why=(
        "Accelerate's plugin, which the Trainer uses too, adds `bf16` with the precision that the script asks for"
        " wherever a config has no section of that name, and DeepSpeed reads `bf16` before `bfloat16`. A config with"
        ' `"bfloat16": {"enabled": true}` trains in fp32 unless the script itself asks for bf16, and the comparison of'
        " config and arguments passes over it."
    ),
    severity=Severity.WARNING,
    effect=Effect.OVERRIDDEN,
    source=(
        "accelerate/utils/dataclasses.py:DeepSpeedPlugin.set_mixed_precision",
        "deepspeed/runtime/precision_config.py:get_bfloat16_config",
    ),
    consumers=(Consumer.TRANSFORMERS, Consumer.ACCELERATE),
    keys=("bfloat16",),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, «"bfloat16"»: {"enabled": true}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, «"bfloat16"»: {"enabled": false}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "bf16": {"enabled": false}}',
            consumer=Consumer.ACCELERATE,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "bfloat16": {"enabled": true}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each section under another name than the one that the consumer adds."""
    for entry in context.entries:
        name = None if entry.key is None or len(entry.path) > 1 else entry.key.alias_of
        if name is None or not isinstance(entry.node, Object) or context.document.member_at((name,)) is not None:
            continue
        auto = context.known.auto(f"{name}.enabled", context.consumer)
        if auto is None or not auto.adds_section or entry.node.value().get("enabled") == AUTO:
            continue
        yield context.finding(
            entry,
            say(
                "{consumer} adds `{name}`, and DeepSpeed then never reads `{name_2}`: `{name}.enabled` comes "
                "from {source}",
                consumer=context.consumer.title,
                name=name,
                name_2=entry.name,
                source=auto.source,
            ),
            part="key",
            fixes=[context.rename(entry, name, say("Rename it to `{name}`", name=name), safe=False)],
        )
