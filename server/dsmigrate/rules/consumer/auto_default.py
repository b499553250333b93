"""DS802: "auto" that DeepSpeed itself drops, so that the default applies."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import AutoEffect, Consumer, Key
from dsmigrate.knowledge.wording import default_text
from dsmigrate.languages import say
from dsmigrate.rules.consumer._shared import SWITCHES, autos, fillers, is_effective, is_section
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS802",
    "auto-means-default",
    summary='A value "auto" that DeepSpeed itself silently drops: the default applies.',
    why="Sections that pydantic checks lose every key whose value is `\"auto\"` before they are read (`v != 'auto'` "
    'in `DeepSpeedConfigModel`, since 0.7.0). `zero_optimization.stage: "auto"` therefore means stage 0, that '
    'is no ZeRO at all, and `bf16.enabled: "auto"` means float32. Only the Transformers Trainer and Accelerate '
    "fill values in.",
    severity=Severity.WARNING,
    effect=Effect.DEFAULT,
    source=("deepspeed/runtime/config_utils.py:DeepSpeedConfigModel",),
    consumers=(Consumer.DEEPSPEED,),
    keys=("zero_optimization.stage", "bf16.enabled", "fp16.enabled", "zero_optimization.reduce_bucket_size"),
    pains=(4, 5),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": «"auto"»}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {}}',
        ),
        Example(
            '{"train_batch_size": 8, "bf16": {"enabled": «"auto"»}, "wandb": {"enabled": «"auto"»}}',
            fixed='{"train_batch_size": 8, "bf16": {}, "wandb": {}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": '
            '{"stage": 3, "sub_group_size": «"auto"», "leaf_module": «"auto"»}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 3}}',
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_bucket_size": 1000000}}'),
        Example('{"train_batch_size": 8, "data_types": {"keep_in_fp32_modules": "auto"}}', version="0.19.8"),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": "auto"}}',
            consumer=Consumer.ACCELERATE,
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each "auto" that a checked section loses."""
    for entry in autos(context):
        key = entry.key
        if key is None or (is_section(context, key) and not context.drops_auto(key)):
            continue
        if key.auto(Consumer.DEEPSPEED).effect is not AutoEffect.DEFAULT or key.dead:
            continue
        if is_effective(context, key, entry.path) is False and key.name not in SWITCHES:
            continue
        by = fillers(context, entry.path)
        yield context.finding(
            entry,
            say(
                'DeepSpeed itself drops "auto" at {path} and takes {default}',
                path=shown(entry.path),
                default=_default(key),
            )
            + (say("; {by} would fill it in", by=by) if by else ""),
            fixes=[
                context.remove(
                    entry,
                    say("Remove {path}, which changes nothing", path=shown(entry.path)),
                    safe=key.name not in SWITCHES,
                )
            ],
        )


def _default(key: Key) -> str:
    if key.path == "zero_optimization.stage":
        return say("stage 0: ZeRO is off")
    if key.is_section:
        return say("no section at all")
    if key.name == "enabled" and key.default is False:
        return say("the default `false`: {parent} is off", parent=shown(key.parent))
    return say("the default {default_text}", default_text=default_text(key))
