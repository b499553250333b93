"""DS450: ZenFlow without what it stands on."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import OPTIMIZER_DEVICE, STAGE, ZENFLOW, is_bf16_optimizer, section


@rule(
    "DS450",
    "zenflow-without-offload",
    summary="ZenFlow without ZeRO or without optimizer offload.",
    why="The section, even an empty one, switches ZenFlow on. Stage 1 and 2 raise unless the optimizer is "
    "offloaded; at stage 3 "
    "the engine is built and the first step fails. At stage 0 the first backward fails, because no optimizer of "
    "ZeRO exists.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/zenflow/zenflow_stage_1_and_2.py:_configure_zenflow",
        "deepspeed/runtime/zenflow/engine.py:configure_zenflow",
    ),
    keys=(ZENFLOW,),
    examples=(
        Example(
            '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": '
            '{"stage": 2, «"zenflow"»: {"update_interval": 1}}}\n',
            fixed='{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, '
            '"zero_optimization": '
            '{"stage": 2}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": '
            '{"stage": 0, «"zenflow"»: {"update_interval": 1}}}\n',
            fixed='{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, '
            '"zero_optimization": '
            '{"stage": 0}}\n',
        ),
        Example(
            '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": '
            '{"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {"update_interval": 1}}}\n',
        ),
        Example('{"train_batch_size": 1, "zero_optimization": {"stage": 2, "zenflow": null}}\n'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the section."""
    entry = section(context, ZENFLOW)
    if entry is None or context.stage is None:
        return
    fix = context.remove(entry, say("Remove ZenFlow"), safe=False)
    if context.stage == 0:
        yield context.finding(
            entry,
            say("ZenFlow needs ZeRO: at stage 0 the first backward or step fails"),
            part="key",
            effect=Effect.CRASH,
            fixes=[fix],
            related=[(STAGE, say("ZeRO is off"))] if context.has(STAGE) else [],
        )
    elif context.device("offload_optimizer") == "none":
        yield context.finding(
            entry,
            say(
                "ZenFlow needs `{optimizer_device}` cpu, and nothing is offloaded here",
                optimizer_device=OPTIMIZER_DEVICE,
            ),
            part="key",
            effect=Effect.CRASH if context.stage == 3 or is_bf16_optimizer(context) else None,
            fixes=[fix],
        )
