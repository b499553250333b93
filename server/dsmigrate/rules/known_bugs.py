"""Whether a config meets a known bug, or what a framework does: their conditions asked of a context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dsmigrate.document import Document, TextEdit
from dsmigrate.document import edits as editing
from dsmigrate.knowledge import MISSING
from dsmigrate.knowledge.bugs import Bug, Conditions, bugs_at, of_frameworks
from dsmigrate.knowledge.versions import order
from dsmigrate.languages import say
from dsmigrate.rules.context import UNKNOWN, Context
from dsmigrate.rules.model import Fix

KNOWN_BUG = "DS970"
"""The code of the rule that reports them."""
_PRECISIONS = ("bf16.enabled", "fp16.enabled")
_STAGE = "zero_optimization.stage"
_DEVICES = {
    "zero_optimization.offload_optimizer.device": "offload_optimizer",
    "zero_optimization.offload_param.device": "offload_param",
}
_NOTHING = frozenset({"0", "0.0"})
_TYPES = {"optimizer.type": "optimizer", "scheduler.type": "scheduler"}


def met(context: Context) -> tuple[Bug, ...]:
    """Return the bugs of the release that the config is certain to meet; what is unknown meets none.

    Which of those of the first known release are older than it, nobody has looked up.
    """
    return context.once("known bugs", lambda: tuple(_met(context)))


def met_when_on(context: Context) -> dict[str, tuple[Bug, ...]]:
    """Return the bugs met besides if a precision that the file leaves to the consumer is on, by its path."""
    sure = met(context)
    left = [path for path in _PRECISIONS if context.raw(path) == "auto" and context.is_on(path) is None]
    found = {path: tuple(bug for bug in _met(context, path) if bug not in sure) for path in left}
    return {path: bugs for path, bugs in found.items() if bugs}


def _met(context: Context, on: str = "") -> Iterator[Bug]:
    """Yield the bugs that are met if the switch ``on`` is on."""
    if context.root is None or context.facts.is_older:
        return
    for bug in bugs_at(context.known.version):
        if _meets(context, bug, on):
            yield bug


def met_through(context: Context, package: str, release: str) -> Iterator[Bug]:
    """Yield what a release of a package, which hands the config on, is certain to do with it."""
    now = order(context.known.version)
    for bug in of_frameworks():
        fits = bug.package == package and bug.affects(release) and order(bug.deepspeed) <= now
        if fits and context.root is not None and _meets(context, bug) and not _is_spared(context, bug):
            yield bug


def usual_through(context: Context, package: str) -> Iterator[Bug]:
    """Yield what releases of a package do that were usual with this release of DeepSpeed."""
    now = order(context.known.version)
    for bug in of_frameworks():
        fits = (
            bug.package == package and bool(bug.usual_until) and order(bug.deepspeed) <= now <= order(bug.usual_until)
        )
        if fits and context.root is not None and _meets(context, bug) and not _is_spared(context, bug):
            yield bug


def _is_spared(context: Context, bug: Bug) -> bool:
    """Whether the config does not come the bug's way, or every training is given an argument that avoids it."""
    if bug.through and not context.facts.through_accelerate:
        return True
    trainings = context.facts.arguments
    return bool(trainings) and all(
        any((found := given.given(name)) is not None and found.text not in _NOTHING for name in bug.unless)
        for given in trainings
    )


def avoiding(context: Context, bug: Bug) -> Fix | None:
    """Return the fix that writes the settings that avoid a bug; None where only another release helps."""
    steps: list[Callable[[Document], tuple[TextEdit, ...]]] = []
    for key, value in bug.sets.items():
        path, given = context.path_of(key), context.has(key)
        steps.append(
            lambda document, path=path, value=value, given=given: (  # type: ignore[misc]
                editing.replace(document, path, value) if given else editing.insert(document, path, value)
            )
        )
    for key in filter(context.has, bug.removes):
        path = context.path_of(key)
        steps.append(lambda document, path=path: editing.remove(document, path))  # type: ignore[misc]
    return context.fix_all(say("Write {avoided}", avoided=bug.avoided), steps, safe=False) if steps else None


def _meets(context: Context, bug: Bug, on: str = "") -> bool:
    """Whether a config is certain to meet what a bug needs, if the switch ``on`` is on."""
    when = (bug.when, *bug.when_any)
    holds = [_holds(context, {path: wanted for path, wanted in one.items() if path != on}) for one in when]
    wants = any(one.get(on, [True]) != [True] for one in when)
    return holds[0] and (not bug.when_any or any(holds[1:])) and not wants


def _holds(context: Context, conditions: Conditions) -> bool:
    return all(_is(context, path, wanted) for path, wanted in conditions.items())


def _is(context: Context, path: str, wanted: Any) -> bool:  # noqa: ANN401 - a condition as the file has it
    if isinstance(wanted, Mapping):
        return all(_compares(context, path, name, value) for name, value in wanted.items())
    if not wanted:
        return context.raw(path) not in (MISSING, None)
    if all(isinstance(value, bool) for value in wanted):
        return context.is_on(path) in wanted
    if "auto" in wanted:
        return context.raw(path) in wanted
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
