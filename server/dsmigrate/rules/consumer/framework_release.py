"""DS822: what the release of Transformers or Accelerate does with the config."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.known_bugs import avoiding, met_through, usual_through
from dsmigrate.rules.model import Arguments, Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS822",
    "framework-release",
    summary="The release of Transformers or Accelerate does with this config what later releases do not.",
    why='What fills in `"auto"`, and what is refused, changed from release to release of both. The release is the '
    "one that the project pins or that is installed here, or what `--transformers-version` and "
    "`--accelerate-version` say; without it only what was usual with the release of DeepSpeed is said. "
    "`schemas/deepspeed/frameworks.toml` lists the differences, each found in the sources of the releases.",
    severity=Severity.WARNING,
    effect=Effect.REJECTED,
    source=("schemas/deepspeed/frameworks.toml",),
    consumers=(Consumer.TRANSFORMERS, Consumer.ACCELERATE),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": «"auto"»}}\n',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 3}}\n',
            consumer=Consumer.TRANSFORMERS,
            facts=Facts(transformers="4.44.2"),
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {}, "scheduler": {"type": "WarmupLR", "params": '
            '{"warmup_num_steps": «"auto"»}}}\n',
            consumer=Consumer.ACCELERATE,
            facts=Facts(accelerate="1.10.1"),
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": "auto"}}\n',
            consumer=Consumer.TRANSFORMERS,
            facts=Facts(transformers="4.46.3"),
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": "auto"}}\n',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": «"auto"»}}\n',
            consumer=Consumer.TRANSFORMERS,
            version="0.15.0",
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {}, "scheduler": {"type": "WarmupLR", "params": '
            '{"warmup_num_steps": "auto"}}}\n',
            consumer=Consumer.TRANSFORMERS,
            facts=Facts(
                transformers="4.51.2",
                arguments=(Arguments("run.sh:3", {"warmup_steps": "0", "warmup_ratio": "0.01"}),),
            ),
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {}, "scheduler": {"type": "WarmupLR", "params": '
            '{"warmup_num_steps": «"auto"»}}}\n',
            consumer=Consumer.TRANSFORMERS,
            facts=Facts(
                transformers="4.51.2",
                arguments=(
                    Arguments("run.sh:3", {"warmup_ratio": "0.01"}),
                    Arguments("plain.sh:3", {"warmup_steps": "0"}),
                ),
            ),
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each difference, at the first of its keys that the file gives."""
    release, package, consumer = context.consumer_release, context.consumer.value, context.consumer.title
    for found in usual_through(context, package) if release is None else met_through(context, package, release):
        told = say("{consumer} {release}: {what}", consumer=consumer, release=release, what=found.said)
        if release is None:
            told = say("{consumer} before {fixed}: {what}", consumer=consumer, fixed=found.fixed, what=found.said)
        yield context.finding(
            next((key for key in found.keys if context.has(key)), found.keys[0]),
            told + (say("; {cure}", cure=found.cure) if found.cure else ""),
            severity=Severity(found.severity) if release else Severity.INFO,
            effect=Effect(found.effect),
            fixes=[avoiding(context, found)] if release else [],
        )
