"""DS765: betas that OneCycle overwrites."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.optimizer._shared import optimizer
from dsmigrate.rules.registry import rule
from dsmigrate.rules.scheduler._shared import schedule
from dsmigrate.rules.typed import given, params_path


@rule(
    "DS765",
    "cycled-momentum",
    summary="A schedule that moves momentum, where the optimizer's own is overwritten or there is none.",
    why="`cycle_momentum` is on by default. OneCycle then moves beta1 between `cycle_max_mom` and "
    "`cycle_min_mom` and sets beta2 to 0.99 for the whole run, whatever `betas` says; an optimizer without "
    "`betas` only gets a warning. torch's CyclicLR and OneCycleLR move beta1, or `momentum`, and raise a "
    "`ValueError` when the optimizer has neither. A `decay_mom_rate` above 0 raises beta1 after the cycle "
    "without limit, past 1 sooner or later.",
    severity=Severity.WARNING,
    effect=Effect.OVERRIDDEN,
    source=("deepspeed/runtime/lr_schedules.py:OneCycle._initialize_momentum",),
    keys=("scheduler.params", "optimizer.params"),
    examples=(
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {«"betas": [0.9, 0.95]»}}, '
            '"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, "cycle_max_lr": 1e-4}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"betas": [0.9, 0.95]}}, '
            '"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, "cycle_max_lr": 1e-4, '
            '"cycle_momentum": false}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adagrad", "params": {"lr": 0.1}}, '
            '"scheduler": {"type": «"CyclicLR"», "params": {"base_lr": 0.1, "max_lr": 0.2}}}',
            fixed='{"train_batch_size": 8, "optimizer": {"type": "Adagrad", "params": {"lr": 0.1}}, '
            '"scheduler": {"type": "CyclicLR", "params": {"base_lr": 0.1, "max_lr": 0.2, "cycle_momentum": false}}}',
        ),
        Example(
            '{"train_batch_size": 8, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, '
            '"cycle_max_lr": 1e-4, "decay_step_size": 100, «"decay_mom_rate": 0.1»}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"betas": [0.9, 0.95]}}, '
            '"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, "cycle_max_lr": 1e-4, '
            '"cycle_momentum": false}}}',
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}, '
            '"scheduler": {"type": "CyclicLR", "params": {"base_lr": 0.1, "max_lr": 0.2}}}',
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for betas that are overwritten, momentum that grows, and optimizers without any."""
    facts = schedule(context)
    if facts is None or "cycle_momentum" not in facts.parameters:
        return
    params = given(context, "scheduler")
    if not params.get("cycle_momentum", True):
        return
    built = optimizer(context)
    key = params_path("scheduler", "cycle_momentum")
    title = say("Set `cycle_momentum` to false")
    if facts.torch:
        if built is not None and (built.takes_anything or not {"momentum", "betas"} & set(built.parameters)):
            yield context.finding(
                "scheduler.type",
                say(
                    "{facts_name} moves momentum unless `cycle_momentum` is false, and `{built_name}` has none: the "
                    "engine cannot build the schedule",
                    facts_name=facts.name,
                    built_name=built.name,
                ),
                severity=Severity.ERROR,
                effect=Effect.REJECTED,
                fixes=[
                    context.replace(key, value=False, title=title, safe=True)
                    if "cycle_momentum" in params
                    else context.insert(key, value=False, title=title, safe=True)
                ],
            )
        return
    betas = given(context, "optimizer").get("betas")
    if isinstance(betas, list) and built is not None and not built.takes_anything:
        yield context.finding(
            params_path("optimizer", "betas"),
            say(
                "`betas` {betas} have no effect: {facts_name} moves beta1 and sets beta2 to 0.99 unless "
                "`cycle_momentum` is false",
                betas=json_text(betas),
                facts_name=facts.name,
            ),
            part="member",
            fixes=[
                context.replace(key, value=False, title=title, safe=False)
                if "cycle_momentum" in params
                else context.insert(key, value=False, title=title, safe=False)
            ],
        )
    growth = params.get("decay_mom_rate", 0)
    if isinstance(growth, (int, float)) and growth > 0 and params.get("decay_step_size"):
        yield context.finding(
            params_path("scheduler", "decay_mom_rate"),
            say(
                "`decay_mom_rate` {growth} raises beta1 after the cycle without limit; at 1 Adam breaks",
                growth=json_text(growth),
            ),
            part="member",
            effect=Effect.RISKY,
        )
