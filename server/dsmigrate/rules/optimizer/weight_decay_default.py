"""DS654: a weight decay that is left out and is not torch's default."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.optimizer._shared import Build, build_of, optimizer
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import given, params_path


@rule(
    "DS654",
    "weight-decay-default",
    summary="AdamW without `weight_decay`, whose default in DeepSpeed is not that of torch.",
    why="FusedAdam and DeepSpeedCPUAdam have a default `weight_decay` of 0, `torch.optim.AdamW` one of 0.01. Left out, "
    "`AdamW` is Adam without any decay, unless parameter groups of the script bring their own; with `torch_adam` the "
    "decay is 0.01. Writing the value says which is meant.",
    severity=Severity.HINT,
    effect=Effect.DEFAULT,
    source=(
        "deepspeed/ops/adam/fused_adam.py:FusedAdam.__init__",
        "deepspeed/ops/adam/cpu_adam.py:DeepSpeedCPUAdam.__init__",
    ),
    keys=("optimizer.params",),
    examples=(
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", «"params"»: {"lr": 1e-4}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": '
            "0.0}}}",
        ),
        Example('{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"weight_decay": 0}}}'),
        Example('{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"torch_adam": true}}}'),
        Example('{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-4}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding where the default is not that of the torch class of the same name."""
    facts = optimizer(context)
    params = given(context, "optimizer")
    if facts is None or facts.name != "AdamW" or not params or "weight_decay" in params:
        return
    if build_of(context, facts) in {None, Build.TORCH}:
        return
    yield context.finding(
        "optimizer.params",
        say(
            "`weight_decay` is left out and so 0 in DeepSpeed's AdamW, while `torch.optim.AdamW` uses 0.01; "
            "write the one that is meant"
        ),
        part="key",
        fixes=[
            context.insert(params_path("optimizer", "weight_decay"), 0.0, say("Write the default, 0"), safe=False),
            context.insert(
                params_path("optimizer", "weight_decay"), 0.01, say("Write torch's default, 0.01"), safe=False
            ),
        ],
    )
