"""DS125: a list with an element of a wrong type or value."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.types._shared import verdicts
from dsmigrate.rules.types._values import place, shown_value
from dsmigrate.rules.types._verdict import Kind


@rule(
    "DS125",
    "wrong-item",
    summary="A list holds an element of a type, or a value, that the key does not take.",
    why=(
        "Pydantic sections raise a `ValidationError` that names the index. Lists that are not checked are searched for "
        "names at run time, where a wrong element matches nothing."
    ),
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=(
        "deepspeed/runtime/zero/leaf_module_config.py:DeepSpeedZeroLeafModuleConfig",
        "deepspeed/compile/config.py:CompileConfig",
    ),
    keys=("zero_optimization.leaf_module.classes", "compile.passes"),
    examples=(
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "leaf_module": {"names": «["mlp", 1]»}}}',
            accepted=False,
        ),
        Example('{"train_batch_size": 8, "compile": {"passes": «["z2"]»}}', accepted=False),
        Example('{"train_batch_size": 8, "comms_logger": {"prof_ops": «[1]»}}'),
        Example('{"train_batch_size": 8, "comms_logger": {"prof_ops": ["all_reduce"]}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each list with such an element."""
    for entry, _, node, verdict in verdicts(context, Kind.ITEM):
        refused = verdict.effect is Effect.REJECTED
        yield context.finding(
            entry,
            say(
                "{place} has to be {wanted}; DeepSpeed {word} {value}",
                place=place(entry),
                wanted=verdict.wanted,
                word=say("rejects") if refused else say("takes and never matches"),
                value=shown_value(node.value()),
            ),
            severity=verdict.severity,
            effect=verdict.effect,
        )
