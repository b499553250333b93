"""DS908: an `activation_checkpointing` section, which does nothing by itself."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.document import Object
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Facts, Finding, Severity
from dsmigrate.rules.registry import rule

_SECTION = "activation_checkpointing"


@rule(
    "DS908",
    "activation-checkpointing-needs-code",
    summary="`activation_checkpointing` does nothing unless the script calls `deepspeed.checkpointing.configure`.",
    why="`deepspeed.initialize` parses the section and never uses it. Its values count only after "
    "`deepspeed.checkpointing.configure(mpu_, deepspeed_config=…)`, and only for layers that run through "
    "`deepspeed.checkpointing.checkpoint`. `torch.utils.checkpoint`, and so `gradient_checkpointing` of "
    "Transformers, reads none of them.",
    severity=Severity.INFO,
    effect=Effect.IGNORED,
    source=(
        "deepspeed/runtime/activation_checkpointing/checkpointing.py:configure",
        "https://github.com/deepspeedai/DeepSpeed/issues/5704",
    ),
    keys=(_SECTION,),
    pains=(42,),
    examples=(
        Example(
            '{"train_batch_size": 8, «"activation_checkpointing"»: {"partition_activations": true, "profile": false}}'
        ),
        Example(
            '{"train_batch_size": 8, "activation_checkpointing": {"partition_activations": false, "profile": false}}'
        ),
        Example(
            '{"train_batch_size": 8, "activation_checkpointing": {"partition_activations": true}}',
            facts=Facts(configures_checkpointing=True),
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for a section that asks for something."""
    entry = context.entry(_SECTION)
    if entry is None or not isinstance(entry.node, Object):
        return
    if context.facts.configures_checkpointing or context.facts.lightning:  # Lightning makes the call
        return
    if any(member.node is not None and member.node.value() for member in entry.node):
        yield context.finding(
            entry,
            say(
                "This section alone changes nothing: the script must call `deepspeed.checkpointing.configure` "
                "and run its layers through `deepspeed.checkpointing.checkpoint`"
            ),
            part="key",
        )
