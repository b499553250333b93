"""DS805: "auto" that is filled with a fixed value, because nothing names another."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge import Consumer
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.consumer._shared import autos
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule


@rule(
    "DS805",
    "auto-without-source",
    summary='A value "auto" that becomes a fixed value, since no argument of the consumer stands behind it.',
    why="Accelerate's plugin fills the ZeRO stage, the offload devices and paths and the gathering of weights from "
    "its own settings. The Transformers Trainer has no argument for them, so that the defaults of that plugin "
    'apply: stage 2, no offload, no gathering. `nvme_path: "auto"` is worse: `accelerate launch` 1.15.0 never '
    'passes the paths on, and the text "none" becomes the path, a directory beside the script.',
    severity=Severity.WARNING,
    effect=Effect.OVERRIDDEN,
    source=(
        "accelerate/utils/dataclasses.py:DeepSpeedPlugin.__post_init__",
        "accelerate/utils/launch.py:prepare_deepspeed_cmd_env",
    ),
    consumers=(Consumer.TRANSFORMERS, Consumer.ACCELERATE),
    keys=("zero_optimization.stage", "zero_optimization.offload_param.nvme_path"),
    pains=(5, 27),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": «"auto"»}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
            consumer=Consumer.TRANSFORMERS,
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": '
            '{"stage": 3, "offload_param": {"device": "nvme", "nvme_path": «"auto"»}}}',
            consumer=Consumer.ACCELERATE,
            accepted=None,  # a path on NVMe needs the async_io extension
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": '
            '{"stage": 3, "offload_param": {"device": "cpu", "nvme_path": "auto"}}}',
            consumer=Consumer.ACCELERATE,
        ),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": "auto"}}', consumer=Consumer.ACCELERATE),
        Example('{"train_batch_size": 8, "zero_optimization": {"stage": 3}}', consumer=Consumer.TRANSFORMERS),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each "auto" whose value is the fallback."""
    for entry in autos(context):
        auto = context.known.auto(entry.path, context.consumer)
        if auto is None or auto.fallback is None or entry.key is None:
            continue
        is_path = entry.name == "nvme_path"
        if is_path and context.raw(f"{entry.key.parent}.device") != "nvme":
            continue
        replacement = (
            None
            if is_path
            else context.replace(
                entry,
                auto.fallback,
                say("Write {fallback}, as happens now", fallback=json_text(auto.fallback)),
                safe=True,
            )
        )
        yield context.finding(
            entry,
            say(
                '"auto" at {path} becomes {fallback} unless {split} says otherwise; write the value that is meant',
                path=shown(entry.path),
                fallback=json_text(auto.fallback),
                split=auto.source.split(",")[0],
            ),
            fixes=[replacement],
        )
