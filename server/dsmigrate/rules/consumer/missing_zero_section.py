"""DS810: a config without `zero_optimization`, or with a bare true or false there, under Transformers or Accelerate."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS810",
    "zero-section-required",
    summary="Transformers and Accelerate require an object at `zero_optimization`; DeepSpeed itself does not.",
    why='Accelerate\'s plugin raises "Please specify the ZeRO optimization config in the DeepSpeed config." when the '
    "section is absent, and the Trainer builds the same plugin. The old short form `true` or `false`, which "
    "DeepSpeed still takes, ends in `AttributeError: 'bool' object has no attribute 'get'`. The autotuner writes the "
    "section into the configs that it tries.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "accelerate/utils/dataclasses.py:DeepSpeedPlugin.__post_init__",
        "accelerate/utils/deepspeed.py:HfDeepSpeedConfig.find_config_node",
    ),
    consumers=(Consumer.TRANSFORMERS, Consumer.ACCELERATE),
    keys=("zero_optimization",),
    pains=(17,),
    examples=(
        Example(
            '«{»"train_batch_size": 8}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            consumer=Consumer.ACCELERATE,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": «true»}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 1}}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {}}', consumer=Consumer.TRANSFORMERS),
        Example('{"train_batch_size": 8}'),
        Example(
            '{"train_batch_size": "auto", "autotuning": {"enabled": true}}',
            consumer=Consumer.TRANSFORMERS,  # the autotuner writes the configs of its trials
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding when the section is absent, or no object where DeepSpeed would take it."""
    if context.root is None or context.is_on("autotuning.enabled") is not False:
        return
    title = context.consumer.title
    entry = context.entry("zero_optimization")
    if entry is None and context.document.member_at(("zero_optimization",)) is None:
        insert = context.insert(
            ("zero_optimization",), {"stage": 2}, say("Add `zero_optimization` with stage 2"), safe=False
        )
        yield context.finding(
            ("zero_optimization",),
            say("{title} stops without a `zero_optimization` section; name at least a stage, 0 for none", title=title),
            fixes=[insert],
        )
    value = context.raw("zero_optimization")
    if entry is not None and isinstance(value, bool):
        section = {"stage": int(value)}
        yield context.finding(
            entry,
            say(
                "{title} needs an object at `zero_optimization` and fails on the short form; for DeepSpeed it "
                "means stage {value}",
                title=title,
                value=int(value),
            ),
            fixes=[
                context.replace(entry, section, say("Write stage {value} as an object", value=int(value)), safe=True)
            ],
        )
