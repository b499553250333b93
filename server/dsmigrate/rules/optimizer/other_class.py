"""DS630: a parameter of another class than the one that the type becomes here."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import only_short, only_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Fix, Severity
from dsmigrate.rules.optimizer._shared import class_name, optimizer, refusal
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import before, parameters, params_path

_DROPPED_SINCE = "0.19.6"
"""Since then `fp32_optimizer_states` is taken out of the parameters without offload too."""


@rule(
    "DS630",
    "parameter-of-another-class",
    summary="A parameter that the optimizer type has, but not the class it becomes in this config.",
    why="The class behind a name depends on the rest of the config: Adam and AdamW become FusedAdam, DeepSpeedCPUAdam "
    "under `offload_optimizer`, and the torch class with `torch_adam`; Adagrad and Lion change with offload as well. "
    "Each takes other names, and a foreign one is a `TypeError` when the engine is built.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine.get_optimizer_configuration",),
    keys=("optimizer.params", "optimizer.type"),
    examples=(
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, «"foreach"»: false}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"torch_adam": true, '
            '«"bias_correction"»: true}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"torch_adam": true}}}',
        ),
        Example(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, '
            '"optimizer": {"type": "Adam", "params": {"lr": 1e-4, «"set_grad_none"»: true}}}',
            fixed='{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, '
            '"optimizer": {"type": "Adam", "params": {"lr": 1e-4}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-4, '
            '«"fp32_optimizer_states"»: true}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-4}}}',
        ),
        Example('{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"amsgrad": false}}}'),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"torch_adam": true, "foreach": false}}}'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each parameter whose class is not built."""
    facts = optimizer(context)
    if facts is None:
        return
    for entry in parameters(context, "optimizer"):
        parameter = facts.parameters.get(entry.name)
        if parameter is None or entry.node is None:
            continue
        outcome = refusal(context, facts, parameter, entry.node.value())
        if outcome is None:
            continue
        if outcome == "ignored" and not facts.takes_anything and before(context, _DROPPED_SINCE):
            outcome = "TypeError"
        ignored = outcome == "ignored"
        does = (
            say("DeepSpeed silently drops it")
            if ignored
            else say("the engine stops with a `{outcome}`", outcome=outcome)
        )
        yield context.finding(
            entry,
            say(
                "{class_name}, which `{facts_name}` becomes here, does not take {name}: {does}. {rstrip}",
                class_name=class_name(context, facts),
                facts_name=facts.name,
                name=shown(entry.name),
                does=does,
                rstrip=only_text(only_short(parameter.only_said)).rstrip(".。"),
            ),
            part="key",
            severity=Severity.INFO if ignored else None,
            effect=Effect.IGNORED if ignored else None,
            fixes=[
                context.remove(entry, say("Remove {path}", path=shown(entry.path)), safe=ignored),
                None if ignored else _torch(context, parameter.only_with),
            ],
        )


def _torch(context: Context, needs: str) -> Fix | None:
    """Return the fix that asks for torch's class, which takes the parameter."""
    if not needs.startswith("`torch_adam` true;"):
        return None
    target = params_path("optimizer", "torch_adam")
    if context.has(".".join(map(str, target))):
        return context.replace(target, value=True, title=say("Use torch's class (`torch_adam`)"), safe=False)
    return context.insert(target, value=True, title=say("Use torch's class (`torch_adam`)"), safe=False)
