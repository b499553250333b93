"""Betas, momentum and eps: how long the optimizer remembers, and what bounds its steps."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.diff.explanations.optimizer._built import PARAMS, built
from dsmigrate.diff.explanations.schedule._owner import built as schedule
from dsmigrate.diff.model import Effect, Explained, Severity
from dsmigrate.diff.pair import Pair
from dsmigrate.diff.phrases import listed, number
from dsmigrate.diff.registry import Example, explanation
from dsmigrate.diff.side import Side
from dsmigrate.knowledge import TypeFacts
from dsmigrate.languages import mark, say

_BETAS = f"{PARAMS}.betas"
_MOMENTUM = f"{PARAMS}.momentum"
_EPS = f"{PARAMS}.eps"
_ADAM = '{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4'
_SGD = '{"train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"lr": 1e-2'
_CYCLE = '}}, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-5, "cycle_max_lr": 1e-3}}}'


@explanation(
    "DF605",
    "moments",
    summary="The optimizer averages gradients over more or fewer steps, or bounds its steps otherwise.",
    why=(
        "A decay of beta averages over about 1 / (1 - beta) steps. `eps` stands in the denominator of the update: a"
        " larger one makes smaller steps for weights with tiny gradients. OneCycle overwrites both betas unless"
        " `cycle_momentum` is false. A resumed checkpoint brings the averages of the old values along."
    ),
    source=("deepspeed/ops/adam/fused_adam.py:FusedAdam", "deepspeed/runtime/lr_schedules.py:OneCycle"),
    examples=(
        Example(
            _ADAM + ', "betas": [0.9, 0.999]}}}',
            _ADAM + ', "betas": [0.9, 0.95]}}}',
            "Squared gradients are averaged over about 20 steps instead of 1000 (beta2 0.999 → 0.95)",
            paths=(_BETAS,),
            effects=(Effect.NUMERICS,),
            severity=Severity.WARNING,
        ),
        Example(
            _ADAM + "}}}",
            _ADAM + ', "betas": [0.8, 0.99]}}}',
            "Gradients are averaged over about 5 steps instead of 10 (beta1 0.9 → 0.8) and squared gradients over"
            " about 100 instead of 1000 (beta2 0.999 → 0.99)",
        ),
        Example(
            _ADAM + _CYCLE,
            _ADAM + ', "betas": [0.8, 0.99]' + _CYCLE,
            "Does nothing: OneCycle moves beta1 itself and sets beta2 to 0.99",
            effects=(Effect.NONE,),
            severity=Severity.NONE,
        ),
        Example(
            _ADAM + "}}}",
            _ADAM + ', "eps": 1e-6}}}',
            "`eps` is 1e-06 instead of 1e-08: smaller steps for weights whose gradients are not far above it",
            paths=(_EPS,),
        ),
        Example(
            _SGD + "}}}",
            _SGD + ', "momentum": 0.9}}}',
            "Momentum is 0.9, previously none: a gradient goes on acting for about 10 steps, which adds up to 10"
            " times its"
            " size",
            paths=(_MOMENTUM,),
        ),
        Example(_ADAM + ', "betas": [0.9, 0.999]}}}', _ADAM + "}}}", ""),
    ),
)
def explain(pair: Pair) -> Iterator[Explained]:
    """Yield what the optimizer remembers now."""
    if built(pair.old) is None or built(pair.new) is None:
        return
    for path, write in ((_BETAS, _betas), (_EPS, _eps), (_MOMENTUM, _momentum)):
        if pair.change(path) is None:
            continue
        if path == _BETAS and all(_cycles(side) for side in (pair.old, pair.new)):
            message = say("Does nothing: OneCycle moves beta1 itself and sets beta2 to 0.99")
            yield pair.says(path, effects=(Effect.NONE,), severity=Severity.NONE, message=message)
            continue
        message, brief = write(pair)
        if message:
            yield pair.says(path, effects=(Effect.NUMERICS,), severity=Severity.WARNING, message=message, brief=brief)


def _betas(pair: Pair) -> tuple[str, str]:
    before, after = pair.values(_BETAS)
    if not _is_pair(before) or not _is_pair(after):
        return "", ""
    assert isinstance(before, list)  # noqa: S101 - a pair
    assert isinstance(after, list)  # noqa: S101 - a pair
    words: list[str] = []
    names: list[str] = []
    for index, what in enumerate((say("gradients"), say("squared gradients"))):
        old, new = before[index], after[index]
        if old != new:
            names.append(f"beta{index + 1} {number(old)} → {number(new)}")
            text = _SECOND if words else _FIRST
            words.append(say(text, what=what, steps=_steps(new), before=_steps(old), name=names[-1]))
    if any(facts is not None and facts.name == "Lion" for facts in (_facts(pair.old), _facts(pair.new))):
        return say(
            "Lion mixes its momentum otherwise: {names}", names=say(", ").join(names)
        ), f"betas {', '.join(names)}"
    sentence = listed(words)
    return sentence[:1].upper() + sentence[1:], say(", ").join(names)


_FIRST = mark("{what} are averaged over about {steps} steps instead of {before} ({name})")
_SECOND = mark("{what} over about {steps} instead of {before} ({name})")


def _eps(pair: Pair) -> tuple[str, str]:
    before, after = pair.numbers(_EPS)
    if before is None or after is None:
        return "", ""
    new, old = number(after), number(before)
    message = (
        say(
            "`eps` is {after} instead of {before}: smaller steps for weights whose gradients are not far above it",
            after=new,
            before=old,
        )
        if after > before
        else say(
            "`eps` is {after} instead of {before}: larger steps for weights whose gradients are not far above {before}",
            after=new,
            before=old,
        )
    )
    return message, f"eps {old} → {new}"


def _momentum(pair: Pair) -> tuple[str, str]:
    before, after = pair.numbers(_MOMENTUM)
    if before is None or after is None:
        return "", ""
    was = number(before) if before else say("none")
    if not 0 < after < 1:
        return say(
            "There is no momentum any more, previously {was}: a gradient acts in its own step alone", was=was
        ), say("no momentum")
    steps = _steps(after)
    facts = _facts(pair.new)
    plain = facts is not None and facts.name == "SGD" and not pair.new.number(f"{PARAMS}.dampening")
    size = say(", which adds up to {steps} times its size", steps=steps) if plain else ""
    return (
        say(
            "Momentum is {after}, previously {was}: a gradient goes on acting for about {steps} steps{size}",
            after=number(after),
            was=was,
            steps=steps,
            size=size,
        ),
        say("momentum {before} → {after}", before=number(before), after=number(after)),
    )


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(item, (int, float)) and 0 <= item < 1 for item in value)
    )


def _steps(beta: float) -> str:
    return f"{1 / (1 - beta):.3g}" if beta < 0.999 else f"{round(1 / (1 - beta))}"


def _facts(side: Side) -> TypeFacts | None:
    found = built(side)
    return found.facts if found is not None else None


def _cycles(side: Side) -> bool:
    facts = schedule(side)
    return facts is not None and facts.name == "OneCycle" and side.is_on("scheduler.params.cycle_momentum") is not False
