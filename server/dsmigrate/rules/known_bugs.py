"""Whether a config meets a known bug: the conditions of ``known-bugs.toml`` asked of a context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dsmigrate.knowledge import MISSING
from dsmigrate.knowledge.bugs import Bug, Conditions, bugs_at
from dsmigrate.rules.context import UNKNOWN, Context

KNOWN_BUG = "DS970"
"""The code of the rule that reports them."""
_PRECISIONS = ("bf16.enabled", "fp16.enabled")
_STAGE = "zero_optimization.stage"
_DEVICES = {
    "zero_optimization.offload_optimizer.device": "offload_optimizer",
    "zero_optimization.offload_param.device": "offload_param",
}
_TYPES = {"optimizer.type": "optimizer", "scheduler.type": "scheduler"}


def met(context: Context) -> tuple[Bug, ...]:
    """Return the bugs of the release that the config is certain to meet; what is unknown meets none."""
    return context.once("known bugs", lambda: tuple(_met(context)))


def met_when_on(context: Context) -> dict[str, tuple[Bug, ...]]:
    """Return the bugs met besides if a precision that the file leaves to the consumer is on, by its path."""
    sure = met(context)
    left = [path for path in _PRECISIONS if context.raw(path) == "auto" and context.is_on(path) is None]
    found = {path: tuple(bug for bug in _met(context, path) if bug not in sure) for path in left}
    return {path: bugs for path, bugs in found.items() if bugs}


def _met(context: Context, on: str = "") -> Iterator[Bug]:
    """Yield the bugs that are met if the switch ``on`` is on."""
    if context.root is None:
        return
    for bug in bugs_at(context.known.version):
        when = (bug.when, *bug.when_any)
        holds = [_holds(context, {path: wanted for path, wanted in one.items() if path != on}) for one in when]
        wants = any(one.get(on, [True]) != [True] for one in when)
        if holds[0] and (not bug.when_any or any(holds[1:])) and not wants:
            yield bug


def _holds(context: Context, conditions: Conditions) -> bool:
    return all(_is(context, path, wanted) for path, wanted in conditions.items())


def _is(context: Context, path: str, wanted: Any) -> bool:  # noqa: ANN401 - a condition as the file has it
    if isinstance(wanted, Mapping):
        return all(_compares(context, path, name, value) for name, value in wanted.items())
    if not wanted:
        return context.raw(path) not in (MISSING, None)
    if all(isinstance(value, bool) for value in wanted):
        return context.is_on(path) in wanted
    return _value(context, path) in wanted


def _compares(context: Context, path: str, name: str, wanted: Any) -> bool:  # noqa: ANN401 - as above
    if name == "given":
        return context.has(path) is wanted
    value = _value(context, path)
    if value is UNKNOWN:
        return False
    if name == "not":
        return value not in wanted
    number = value if isinstance(value, (int, float)) else context.number(path)
    return number is not None and (number > wanted if name == "above" else number < wanted)


def _value(context: Context, path: str) -> object:
    """Return what a key is for DeepSpeed, with its old spellings: UNKNOWN where that is not known."""
    if path == _STAGE:
        return UNKNOWN if context.stage is None else context.stage
    if path in _DEVICES:
        device = context.device("offload_param" if _DEVICES[path] == "offload_param" else "offload_optimizer")
        return UNKNOWN if device is None else device
    if path in _TYPES:
        facts = context.type_of("optimizer" if _TYPES[path] == "optimizer" else "scheduler")
        return MISSING if facts is None else facts.name
    return context.value(path)
