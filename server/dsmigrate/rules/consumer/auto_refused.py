"""DS804: "auto" that neither the Trainer nor Accelerate fills, so that Accelerate stops."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Path
from dsmigrate.knowledge import AutoEffect, Consumer, Key
from dsmigrate.languages import say
from dsmigrate.rules.consumer._shared import AUTO, SWITCHES, auto_paths, is_gone
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Fix, Severity
from dsmigrate.rules.registry import rule

_OTHER = {Consumer.TRANSFORMERS: Consumer.ACCELERATE, Consumer.ACCELERATE: Consumer.TRANSFORMERS}


@rule(
    "DS804",
    "auto-not-filled",
    summary='A value "auto" that the consumer does not fill, and for which Accelerate raises a ValueError.',
    why="`Accelerator.prepare` walks over every key of the config, at any depth and also under names that DeepSpeed "
    'does not know, and raises "`x.y` not found in kwargs. Please specify `x.y` without `auto`" for each '
    '`"auto"` that it has no value for; only lists are left alone, and names with a dot. The Transformers Trainer '
    'fills some keys more, then calls the same code: in 5.23.0 an `"auto"` that is left does not reach DeepSpeed any '
    "more. Neither of them knows a second spelling of a key, such as `prefetch_bucket_size`, and `bfloat16` is one.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "accelerate/utils/dataclasses.py:DeepSpeedPlugin.deepspeed_config_process",
        "https://github.com/huggingface/accelerate/issues/1644",
    ),
    consumers=(Consumer.TRANSFORMERS, Consumer.ACCELERATE),
    keys=("zero_optimization.overlap_comm",),
    pains=(5,),
    training=True,
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": «"auto"»}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            """{
  "train_batch_size": 8,
  "zero_optimization": {"stage": 2},
  "optimizer": {"type": "AdamW", "params": {"lr": 0.001, "betas": «"auto"»}}
}
""",
            fixed="""{
  "train_batch_size": 8,
  "zero_optimization": {"stage": 2},
  "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}
}
""",
            consumer=Consumer.ACCELERATE,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "my_own": {"rate": «"auto"»}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "my_own": {}}',
            consumer=Consumer.ACCELERATE,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "pipeline": {"stages": «"auto"»}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "pipeline": {}}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "prefetch_bucket_size": «"auto"»}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 3}}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            """{
  "train_batch_size": 8,
  "zero_optimization": {"stage": 2},
  "optimizer": {"type": "AdamW", "params": {"lr": 0.001}},
  "zero_allow_untested_optimizer": «"auto"»
}
""",
            fixed="""{
  "train_batch_size": 8,
  "zero_optimization": {"stage": 2},
  "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}
}
""",
            consumer=Consumer.ACCELERATE,
        ),
        Example(
            """{
  "train_batch_size": 8,
  "zero_optimization": {"stage": 2},
  "zero_allow_untested_optimizer": "auto",
  "steps_per_print": "auto",
  "my.own": "auto"
}
""",
            consumer=Consumer.ACCELERATE,
            accepted=False,
        ),
        Example(
            """{
  "train_batch_size": "auto",
  "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"},
  "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}},
  "my_own": ["auto"]
}
""",
            consumer=Consumer.TRANSFORMERS,
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": "auto"}}'),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {}, "amp": {"enabled": false, "opt_level": «"auto"»}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {}, "amp": {"enabled": false}}',
            consumer=Consumer.TRANSFORMERS,
            version="0.16.9",
            accepted=None,  # a verdict of another release
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {}, "amp": {"enabled": "auto", "opt_level": "auto"}}',
            consumer=Consumer.TRANSFORMERS,
            version="0.16.9",
            facts=Facts(transformers="4.57.6"),
            accepted=None,  # the same
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each "auto" below objects that the consumer has no value for."""
    for path in auto_paths(context):
        auto = context.known.auto(path, context.consumer)
        filled = context.fills(path) and not (auto is not None and context.has(auto.unless))
        if filled or is_gone(context, path):
            continue
        key = context.known.key(path)
        yield context.finding(
            path,
            say(
                '{name} does not fill "auto" at {path}, and Accelerate then stops with an error{instead}',
                name=_name(context.consumer),
                path=shown(path),
                instead=_instead(context, path, key),
            ),
            fixes=[_fix(context, path, key)],
        )


def _name(consumer: Consumer) -> str:
    return say("the Trainer") if consumer is Consumer.TRANSFORMERS else consumer.title


def _instead(context: Context, path: Path, key: Key | None) -> str:
    if key is not None and key.default == AUTO:
        return say('; leave the key out, "auto" is its default')
    other = context.known.auto(path, _OTHER[context.consumer])
    if other is not None and other.effect is AutoEffect.FILLED:
        return say("; only {other} fills it", other=_OTHER[context.consumer].title)
    return say("; write a value, or leave the key out")


def _fix(context: Context, path: Path, key: Key | None) -> Fix | None:
    """Return the removal, safe where "auto" can only have meant the default; None for a key that must be there."""
    if key is not None and key.required_when is not None:
        return None
    means_default = (
        key is not None and key.auto(Consumer.DEEPSPEED).effect in {AutoEffect.DEFAULT, AutoEffect.VALUE}
    ) and path[-1] not in SWITCHES
    return context.remove(path, say("Remove {path} and take its default", path=shown(path)), safe=means_default)
