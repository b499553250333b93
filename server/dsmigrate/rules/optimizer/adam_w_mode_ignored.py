"""DS652: `adam_w_mode` false under the type AdamW."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.optimizer._shared import optimizer
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import given, params_path


@rule(
    "DS652",
    "adam-w-mode-ignored",
    summary="`adam_w_mode` false under the type AdamW, which decouples the decay all the same.",
    why="The engine takes `adam_w_mode` out of the parameters and looks at it only for the type `Adam`. With "
    "`AdamW` the decay is decoupled whatever it says, with `torch_adam` too.",
    severity=Severity.WARNING,
    effect=Effect.IGNORED,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._configure_basic_optimizer",),
    keys=("optimizer.params", "optimizer.type"),
    examples=(
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, «"adam_w_mode": false»}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}',
        ),
        Example('{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"adam_w_mode": true}}}'),
        Example('{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"adam_w_mode": false}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for an AdamW that is told not to be one."""
    facts = optimizer(context)
    if facts is None or facts.name != "AdamW" or given(context, "optimizer").get("adam_w_mode", True):
        return
    path = params_path("optimizer", "adam_w_mode")
    yield context.finding(
        path,
        say("`AdamW` ignores `adam_w_mode`: the weight decay stays decoupled; the type `Adam` listens to it"),
        part="member",
        fixes=[
            context.remove(path, say("Remove `adam_w_mode`"), safe=True),
            context.replace("optimizer.type", "Adam", say("Write `Adam`, for decay through the gradient"), safe=False),
        ],
    )
