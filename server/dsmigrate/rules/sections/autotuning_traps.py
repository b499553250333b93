"""DS932: settings on which the autotuner fails, or chooses the slowest configuration."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.knowledge import Consumer
from dsmigrate.languages import mark, say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule

_MICRO = "train_micro_batch_size_per_gpu"
_METRICS = {
    "flops": mark("the metrics file has no `flops`: KeyError; the floating-point rate is called `FLOPS_per_gpu`"),
    "latency": mark("the largest value wins, which is the slowest configuration"),
}


@rule(
    "DS932",
    "autotuning-traps",
    summary="Settings with which the autotuner crashes or searches for the wrong thing.",
    why="The metric is looked up by name in each experiment's file, which has no `flops`, and the largest value "
    "wins, also of `latency`. A `model_info` object makes the launcher skip the profiling job, whose activation "
    "memory it then misses (TypeError). Each experiment has a micro-batch of its own in the config, and the Trainer "
    "stops if `--per_device_train_batch_size` is another; `arg_mappings` writes it there too.",
    severity=Severity.WARNING,
    effect=Effect.CRASH,
    source=(
        "deepspeed/autotuning/scheduler.py:ResourceManager.parse_results",
        "deepspeed/autotuning/autotuner.py:Autotuner.model_info_profile_run",
        "deepspeed/autotuning/scheduler.py:ResourceManager.run_job",
    ),
    keys=("autotuning.metric", "autotuning.model_info", "autotuning.arg_mappings"),
    examples=(
        Example(
            '{"train_batch_size": 8, "autotuning": {"metric": «"flops"», «"model_info"»: {"num_params": 1000000}}}',
            fixed='{"train_batch_size": 8, "autotuning": {"metric": "FLOPS_per_gpu"}}',
        ),
        Example(
            '{"train_batch_size": 8, "autotuning": {"metric": «"latency"»}}',
            fixed='{"train_batch_size": 8, "autotuning": {"metric": "throughput"}}',
        ),
        Example('{"train_batch_size": 8, "autotuning": {"metric": "throughput", "model_info": null}}'),
        Example('{"train_batch_size": 8, "autotuning": {"model_info": {"profile": true}}}'),
        Example(
            '{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {}, "autotuning": {«"enabled"»: true}}',
            fixed='{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {}, "autotuning": {"enabled": true, '
            '"arg_mappings": {"train_micro_batch_size_per_gpu": "--per_device_train_batch_size"}}}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {}, "autotuning": {"enabled": true, '
            '"arg_mappings": {"train_micro_batch_size_per_gpu": "--per_device_train_batch_size"}}}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example('{"train_batch_size": 8, "autotuning": {"enabled": true}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each such setting."""
    metric = context.raw("autotuning.metric")
    if isinstance(metric, str) and metric in _METRICS:
        better = "FLOPS_per_gpu" if metric == "flops" else "throughput"
        yield context.finding(
            "autotuning.metric",
            say("With `{metric}` {metrics}", metric=metric, metrics=say(_METRICS[metric])),
            effect=Effect.CRASH if metric == "flops" else Effect.MISREAD,
            fixes=[context.replace("autotuning.metric", better, say("Write `{better}`", better=better), safe=False)],
        )
    info = context.entry("autotuning.model_info")
    if info is not None and isinstance(info.node, Object) and not context.is_on("autotuning.model_info.profile"):
        yield context.finding(
            info,
            say(
                "With this object, even empty, `deepspeed --autotuning` ends in a TypeError before the first experiment"
            ),
            part="key",
            fixes=[context.remove(info, say("Remove `model_info`"), safe=False)],
        )
    if (
        context.consumer is Consumer.TRANSFORMERS
        and context.is_on("autotuning.enabled")
        and context.document.node_at(("autotuning", "arg_mappings", _MICRO)) is None
    ):
        yield context.finding(
            "autotuning.enabled",
            say(
                "the tuner tries micro-batches of its own, and the Trainer stops at each that is not "
                "`--per_device_train_batch_size`: name that in `arg_mappings`"
            ),
            part="key",
            fixes=[
                context.insert(
                    ("autotuning", "arg_mappings", _MICRO),
                    "--per_device_train_batch_size",
                    say("Write the micro-batch into the argument too"),
                    safe=False,
                )
            ],
        )
