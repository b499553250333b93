"""Whether the key does anything here, and whether its value is only the default."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsmigrate.editing.derived import Unmet, shadowed_by, unmet
from dsmigrate.editing.hover.here.subject import Subject
from dsmigrate.editing.hover.told import USELESS, is_told
from dsmigrate.editing.markdown import code, flow
from dsmigrate.knowledge import MISSING, Key, Status, knowledge
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say

STAGE = "zero_optimization.stage"
_HERE = frozenset({Status.PRESENT, Status.DEPRECATED})


def lines(at: Subject) -> Iterator[str]:
    """Yield why the key does nothing."""
    key = at.key
    if key is None or key.status not in _HERE:
        return
    if not is_told(at.view, at.target, USELESS):
        yield from _useless(at, key)


def default_lines(at: Subject) -> Iterator[str]:
    """Yield that the value is only the default, where the key does something."""
    key = at.key
    if key is None or key.status not in _HERE or at.scalar is None or is_useless(at):
        return
    if _is_default(at.scalar.value(), key.default):
        yield say("This is the default: leaving the key out means the same.")


def is_useless(at: Subject) -> bool:
    """Return whether the key does nothing here."""
    return at.key is not None and any(True for _ in _useless(at, at.key))


def _useless(at: Subject, key: Key) -> Iterator[str]:
    context = at.context
    other = shadowed_by(context, at.target.path)
    if other:
        yield say("Not looked at: `{other}` is there as well, and counts.", other=other)
        return
    if key.dead and context.known.version == knowledge().version:
        yield say("No effect. {flow}", flow=flow(key.dead))
        return
    condition = unmet(context, key, at.target.path)
    if condition is not None:
        yield inert_text(condition)


def inert_text(condition: Unmet) -> str:
    """Return why a key is inert: "Inert: the ZeRO stage is 2, and it works at stage 3 only."."""
    if condition.alternatives:
        return say("Inert: it works only when {alternatives}.", alternatives=condition.alternatives)
    if not condition.wanted:
        return say("Inert: it works only when `{condition_path}` is there.", condition_path=condition.path)
    wanted = _alternatives([json_text(value) for value in condition.wanted])
    if condition.path == STAGE:
        return say(
            "Inert: the ZeRO stage is {held}, and it works at stage {wanted} only.", held=condition.held, wanted=wanted
        )
    return say(
        "Inert: `{condition_path}` is {held}, and it works with {wanted} only.",
        condition_path=condition.path,
        held=_held(condition.held),
        wanted=wanted,
    )


def _held(value: object) -> str:
    if value is MISSING or value is None:
        return say("not set")
    return code(json_text(value)) if isinstance(value, (bool, int, float, str)) else say("something else")


def _is_default(value: object, default: object) -> bool:
    if default is MISSING or isinstance(value, (list, dict)) or value is None:
        return False
    return value == default and isinstance(value, bool) is isinstance(default, bool)


def _alternatives(words: Sequence[str]) -> str:
    return (
        words[0]
        if len(words) == 1
        else say("{words} or {words_2}", words=say(", ").join(words[:-1]), words_2=words[-1])
    )
