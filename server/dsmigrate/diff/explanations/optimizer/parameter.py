"""Any other parameter of the optimizer, from the facts of its type."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.optimizer._built import PARAMS, built
from dsmigrate.diff.model import Change, Effect, Explained, Severity
from dsmigrate.diff.pair import Pair, shown
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.knowledge import MISSING, Parameter, TypeFacts
from dsmigrate.knowledge.wording import only_short, value_name
from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN
from dsmigrate.rules.optimizer._shared import refusal

_ELSEWHERE = frozenset(
    {
        "lr",
        "muon_lr",
        "adam_lr",
        "weight_decay",
        "betas",
        "eps",
        "momentum",
        "torch_adam",
        "adam_w_mode",
        "max_grad_norm",
    }
)
_IDLE = frozenset({"set_grad_none"})
"""Parameters that no step of the engine looks at."""
_SPEED = frozenset({"foreach", "fused", "capturable"})
"""Parameters that choose an implementation of the same step."""
_SGD = '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 1e-2, "momentum": 0.9'


@explanation(
    "DF607",
    "optimizer-parameter",
    summary="A parameter of the optimizer that no other explanation tells, as the facts of its type have it.",
    why=(
        "Parameters go to the constructor of the class that the type builds, with the defaults of that class. Those"
        " that choose an implementation leave the numbers alone but for rounding; some are taken and never used."
    ),
    source=("schemas/deepspeed/keys/optimizer_types.toml",),
    examples=(
        Example(
            _SGD + "}}}",
            _SGD + ', "nesterov": true}}}',
            "Nesterov form of the momentum: `true` now, previously `false`, the default",
            paths=(f"{PARAMS}.nesterov",),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
        ),
        Example(
            _SGD + "}}}",
            _SGD + ', "foreach": false}}}',
            "Updates many tensors per kernel instead of one by one",
            effects=(Effect.NUMERICS, Effect.SPEED),
            severity=Severity.INFO,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}',
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "set_grad_none": false}}}',
            "Does nothing: the engine clears gradients itself",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}',
            '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "fp32_optimizer_states":'
            " false}}}",
            "Does nothing: it needs `zero_optimization.offload_optimizer`",
            effects=(Effect.NONE,),
        ),
        Example(_SGD + "}}}", _SGD + ', "nesterov": false}}}', ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what a parameter does and what it is now."""
    before, after = built(pair.old), built(pair.new)
    if before is None or after is None:
        return
    for change in pair.live(PARAMS):
        name = change.path.removeprefix(f"{PARAMS}.")
        old, new = before.facts.parameters.get(name), after.facts.parameters.get(name)
        if name in _ELSEWHERE or old is None or new is None:
            continue
        reason = _idle(pair, change, name, (before.facts, old), (after.facts, new))
        if reason:
            yield pair.says(change.path, effects=(Effect.NONE,), severity=Severity.NONE, message=reason)
        else:
            yield _told(pair, change, new)


def _told(pair: Pair, change: Change, parameter: Parameter) -> Explained:
    alike = parameter.name in _SPEED
    return pair.says(
        change.path,
        effects=(Effect.NUMERICS, Effect.SPEED) if alike else (Effect.NUMERICS,),
        severity=Severity.INFO if alike else Severity.WARNING,
        message=say(
            "{rstrip}: {value} now, previously {value_2}",
            rstrip=parameter.summary.rstrip("."),
            value=_value(change.new, change.new_meant, parameter),
            value_2=_value(change.old, change.old_meant, parameter),
        ),
        brief=say("`{parameter_name}` of the optimizer", parameter_name=parameter.name),
    )


def _value(written: object, meant: object, parameter: Parameter) -> str:
    means = parameter.values.get(value_name(meant), "") if meant not in (MISSING, UNKNOWN) else ""
    text = say("{text} ({remarks})", text=shown(meant), remarks=means.rstrip(".。")) if means else shown(meant)
    return say("{text}, the default", text=text) if written is MISSING and meant is not MISSING else text


def _idle(pair: Pair, change: Change, name: str, *kinds: tuple[TypeFacts, Parameter]) -> str:
    """Return why a parameter does nothing on either side; "" where it does, or where a side refuses it."""
    if name in _IDLE:
        return say("Does nothing: the engine clears gradients itself")
    sides: tuple[Side, Side] = (pair.old, pair.new)
    ends = [
        refusal(side.context, facts, parameter, value)
        for side, (facts, parameter), value in zip(sides, kinds, (change.old, change.new), strict=True)
    ]
    if ends == ["ignored", "ignored"]:
        needs = only_short(kinds[1][1].only_said)
        return say("Does nothing: it needs {needs}", needs=needs)
    return ""
