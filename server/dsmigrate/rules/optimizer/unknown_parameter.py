"""DS620: a parameter that the optimizer type does not have."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.optimizer._shared import class_name, optimizer, refusal
from dsmigrate.rules.registry import rule
from dsmigrate.rules.typed import is_new, nearest_names, one_of, parameters


@rule(
    "DS620",
    "unknown-optimizer-parameter",
    summary="A parameter that the optimizer type does not have.",
    why="`params` goes as it is to the constructor of the class behind `optimizer.type`, so an unknown name is a "
    "`TypeError: unexpected keyword argument` when the engine is built; reading the config alone does not tell. Muon "
    "picks the names it knows and drops the rest unseen.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._configure_basic_optimizer",),
    keys=("optimizer.params",),
    examples=(
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, «"weight_decey"»: 0.1}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": '
            "0.1}}}",
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-4, «"adamw_mode"»: false}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-4, "adam_w_mode": '
            "false}}}",
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1, «"grouped_lr"»: true}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"lr": 0.02, «"nesterov"»: true}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {"lr": 0.02}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Muon", "params": {«"muon_lr"»: 0.02}}}',
            version="0.18.2",
            accepted=None,  # a verdict of another release
        ),
        Example('{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9}}}'),
        Example('{"train_batch_size": 8, "optimizer": {"type": "Prodigy", "params": {"d0": 1e-6}}}', accepted=False),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each name that the type does not have in this release."""
    facts = optimizer(context)
    if facts is None:
        return
    swallowed = facts.takes_anything
    severity, effect = (Severity.WARNING, Effect.IGNORED) if swallowed else (Severity.ERROR, Effect.REJECTED)
    does = say("silently drops it") if swallowed else say("stops with a `TypeError`")
    for entry in parameters(context, "optimizer"):
        if entry.name == "max_grad_norm":
            continue
        parameter = facts.parameters.get(entry.name)
        if parameter is not None:
            if is_new(parameter.since, context):
                yield context.finding(
                    entry,
                    say(
                        "`{facts_name}` takes {name} since {since}: DeepSpeed {known_version} {does}",
                        facts_name=facts.name,
                        name=shown(entry.name),
                        since=parameter.since,
                        known_version=context.known.version,
                        does=does,
                    ),
                    part="key",
                    severity=severity,
                    effect=effect,
                )
            continue
        taken = [
            name
            for name, known in facts.parameters.items()
            if refusal(context, facts, known, value=True) is None and not context.has(f"optimizer.params.{name}")
        ]
        likely = nearest_names(entry.name, taken) if len(entry.name) > 1 else []
        advice = say("; did you mean {likely}?", likely=one_of(likely)) if likely else ""
        fixes = [context.rename(entry, name, say("Rename to `{name}`", name=name), safe=False) for name in likely]
        yield context.finding(
            entry,
            say(
                "{class_name} has no parameter {name}: DeepSpeed {does}{advice}",
                class_name=class_name(context, facts),
                name=shown(entry.name),
                does=does,
                advice=advice,
            ),
            part="key",
            severity=severity,
            effect=effect,
            fixes=[*fixes, context.remove(entry, say("Remove {path}", path=shown(entry.path)), safe=swallowed)],
        )
