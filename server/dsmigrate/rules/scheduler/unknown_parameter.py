"""DS720: a parameter that the schedule does not have."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import schedule
from dsmigrate.rules.typed import nearest_names, one_of, parameters

_RATES = {"warmup_min_lr": "warmup_min_ratio", "warmup_max_lr": ""}
"""What WarmupCosineLR has instead of the rates of the other two: a share of the optimizer's, and that rate itself."""


@rule(
    "DS720",
    "unknown-scheduler-parameter",
    summary="A parameter that the schedule does not have.",
    why="`params` goes as it is to the constructor of the schedule, so an unknown name is a `TypeError: "
    "unexpected keyword argument` when the engine is built; reading the config alone does not tell. "
    "WarmupCosineLR has no rates of its own: its peak is the `lr` of the optimizer, its start and floor are "
    "ratios of it.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/engine.py:DeepSpeedEngine._scheduler_from_config",),
    keys=("scheduler.params",),
    examples=(
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {«"warmup_num_step"»: 100}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {«"total_num_steps"»: 1000}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "WarmupCosineLR", '
            '"params": {"total_num_steps": 5000, «"warmup_max_lr"»: 1e-4}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": '
            "5000}}}",
        ),
        Example('{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100}}}'),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each name that the schedule does not have."""
    facts = schedule(context)
    if facts is None:
        return
    for entry in parameters(context, "scheduler"):
        if entry.name in facts.parameters:
            continue
        free = [name for name in facts.parameters if not context.has(f"scheduler.params.{name}")]
        is_rate = facts.name == "WarmupCosineLR" and entry.name in _RATES
        likely = [] if is_rate or len(entry.name) < 2 else nearest_names(entry.name, free)
        advice = say("; did you mean {likely}?", likely=one_of(likely)) if likely else ""
        if is_rate:
            ratio = _RATES[entry.name]
            advice = (
                say("; it has a ratio, `{ratio}`", ratio=ratio) if ratio else say("; its peak is `optimizer.params.lr`")
            )
        others = [
            other.name for other in context.known.schedulers() if not other.torch and entry.name in other.parameters
        ]
        if others and not likely and not is_rate:
            advice = say(
                "; {others} {en_have} it", others=one_of(others), en_have="has" if len(others) == 1 else "have"
            )
        fixes = [context.rename(entry, name, say("Rename to `{name}`", name=name), safe=False) for name in likely]
        yield context.finding(
            entry,
            say(
                "`{facts_name}` has no parameter {name}: the engine stops with a `TypeError`{advice}",
                facts_name=facts.name,
                name=shown(entry.name),
                advice=advice,
            ),
            part="key",
            fixes=[*fixes, context.remove(entry, say("Remove {path}", path=shown(entry.path)), safe=False)],
        )
