"""DS790: a parameter of the schedule that does nothing beside the others."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity, Tag
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import schedule, unmet
from dsmigrate.rules.typed import before, given, parameters

_STAIRS_SINCE = "0.19.4"


@rule(
    "DS790",
    "inert-scheduler-parameter",
    summary="A parameter of the schedule that does nothing with the others as they are.",
    why="The decay of OneCycle needs both `decay_step_size` and a rate, its momenta need `cycle_momentum`, `gamma` of "
    "CyclicLR needs the mode `exp_range`. Before 0.19.4 OneCycle stores the stair counts and climbs smoothly.",
    severity=Severity.INFO,
    effect=Effect.IGNORED,
    source=("deepspeed/runtime/lr_schedules.py:OneCycle",),
    keys=("scheduler.params",),
    examples=(
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, '
            '"cycle_max_lr": 1e-4, «"decay_lr_rate"»: 0.1}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, '
            '"cycle_max_lr": 1e-4}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, '
            '"cycle_max_lr": 1e-4, "cycle_momentum": false, «"cycle_max_mom"»: 0.95}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, '
            '"cycle_max_lr": 1e-4, "cycle_momentum": false}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, '
            '"cycle_max_lr": 1e-4, «"cycle_first_stair_count"»: 5}}}',
            fixed='{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, '
            '"cycle_max_lr": 1e-4}}}',
            version="0.19.3",
            accepted=None,  # a verdict of another release
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, '
            '"cycle_max_lr": 1e-4, "decay_lr_rate": 0.1, "decay_step_size": 100, "cycle_max_mom": 0.95}}}',
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each parameter whose condition is not met, unless it says nothing new anyway."""
    facts = schedule(context)
    if facts is None:
        return
    for entry in parameters(context, "scheduler"):
        parameter = facts.parameters.get(entry.name)
        if parameter is None or entry.node is None or entry.node.value() == parameter.default:
            continue
        reason = unmet(context, parameter)
        if entry.name.endswith("stair_count") and before(context, _STAIRS_SINCE):
            reason = say("DeepSpeed {stairs_since} or later", stairs_since=_STAIRS_SINCE)
        if reason is None and entry.name == "decay_step_size" and not _decays(given(context, "scheduler")):
            reason = say("`decay_lr_rate` or `decay_mom_rate`")
        if reason is not None:
            yield context.finding(
                entry,
                say("{name} does nothing without {reason}", name=shown(entry.name), reason=reason),
                part="key",
                fixes=[context.remove(entry, say("Remove {path}", path=shown(entry.path)), safe=True)],
                tags=[Tag.UNNECESSARY],
            )


def _decays(params: dict[str, object]) -> bool:
    return bool(params.get("decay_lr_rate") or params.get("decay_mom_rate"))
