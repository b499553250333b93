"""DS452: ZenFlow intervals that do not go together."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.context import Context, shown
from dsmigrate.rules.model import Effect, Example, Finding, Severity
from dsmigrate.rules.registry import rule
from dsmigrate.rules.zero._shared import ZENFLOW, place, section

_STRATEGY = f"{ZENFLOW}.select_strategy"
_SELECT = f"{ZENFLOW}.select_interval"
_UPDATE = f"{ZENFLOW}.update_interval"
_WARM_UP = f"{ZENFLOW}.full_warm_up_rounds"
_HEAD = '{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": '
_OFFLOAD = '{"stage": 2, "offload_optimizer": {"device": "cpu"}, '


@rule(
    "DS452",
    "zenflow-intervals",
    summary="Intervals of ZenFlow that do not fit each other or its strategy, and a warm-up of less than none.",
    why="With the strategy `auto` the interval must be left out: a number raises a bare `Warning` as an exception. "
    "With `step` "
    "and `epoch` it must be a number. In steps it must not be below a numeric `update_interval`. The engine stops "
    "otherwise. With `full_warm_up_rounds` below 0 the columns are never selected, and the first step fails.",
    severity=Severity.ERROR,
    effect=Effect.REJECTED,
    source=("deepspeed/runtime/zenflow/engine.py:configure_zenflow",),
    keys=(_SELECT, _STRATEGY, _UPDATE, _WARM_UP),
    examples=(
        Example(
            _HEAD + _OFFLOAD + '"zenflow": {"select_interval": «4», "update_interval": 2}}}\n',
            fixed=_HEAD + _OFFLOAD + '"zenflow": {"update_interval": 2}}}\n',
        ),
        Example(
            _HEAD + _OFFLOAD + '"zenflow": {"select_strategy": «"step"», "update_interval": 2}}}\n', accepted=False
        ),
        Example(
            _HEAD
            + _OFFLOAD
            + '"zenflow": {"select_strategy": "step", "select_interval": «2», "update_interval": 4}}}\n',
            fixed=_HEAD
            + _OFFLOAD
            + '"zenflow": {"select_strategy": "step", "select_interval": 4, "update_interval": 4}}}\n',
        ),
        Example(
            _HEAD + _OFFLOAD + '"zenflow": {"full_warm_up_rounds": «-1»}}}\n',
            fixed=_HEAD + _OFFLOAD + '"zenflow": {}}}\n',
        ),
        Example(
            _HEAD + _OFFLOAD + '"zenflow": {"select_strategy": "step", "select_interval": 8, "update_interval": 4}}}\n'
        ),
        Example(
            _HEAD + _OFFLOAD + '"zenflow": {"select_strategy": "epoch", "select_interval": 1, "update_interval": 4}}}\n'
        ),
    ),
)
def check(context: Context) -> Iterator[Finding]:
    """Yield a finding at the interval, or at the strategy that asks for one."""
    if section(context, ZENFLOW) is None:
        return
    rounds = context.number(_WARM_UP)
    if rounds is not None and rounds < 0:
        stops = context.stage in {1, 2}
        yield context.finding(
            _WARM_UP,
            say("{rounds} rounds of warm-up never end in a selection", rounds=json_text(rounds))
            + (say(": the first step fails") if stops else ""),
            severity=None if stops else Severity.WARNING,
            effect=Effect.CRASH if stops else Effect.RISKY,
            fixes=[context.remove(_WARM_UP, say("Remove {warm_up}", warm_up=shown(_WARM_UP)), safe=False)],
        )
    strategy, interval, update = context.value(_STRATEGY), context.value(_SELECT), context.value(_UPDATE)
    if strategy == "auto" and isinstance(interval, int):
        yield context.finding(
            _SELECT,
            say("the strategy `auto` chooses the interval itself and refuses {interval}", interval=json_text(interval)),
            fixes=[context.remove(_SELECT, say("Remove {select}", select=shown(_SELECT)), safe=False)],
        )
    elif strategy in ("step", "epoch") and interval == "auto":
        yield context.finding(
            place(context, _SELECT, _STRATEGY),
            say("the strategy `{strategy}` needs a number as `select_interval`", strategy=strategy),
        )
    elif strategy == "step" and isinstance(interval, int) and isinstance(update, int) and 0 != interval < update:
        yield context.finding(
            _SELECT,
            say(
                "{interval} is below the update interval {update}, which the engine refuses",
                interval=interval,
                update=update,
            ),
            fixes=[context.replace(_SELECT, update, say("Use {update}", update=update), safe=False)],
            related=[(_UPDATE, say("the update interval"))],
        )
