"""Warm-ups that earlier releases raised to two steps, and that the new one refuses."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.actions.draft import Step, put
from dsmigrate.editing.actions.upgrading.crossing import Crossing, Left
from dsmigrate.knowledge.versions import order
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import say
from dsmigrate.rules.scheduler._shared import CHECKED_SINCE, warms_up

_KEY = "warmup_num_steps"
_LEAST = 2


def clamped(crossing: Crossing) -> Iterator[Step | Left]:
    """Yield the number of steps that the earlier release took instead of a smaller one."""
    since = order(CHECKED_SINCE[_KEY])
    if order(crossing.earlier.version) >= since or order(crossing.context.known.version) < since:
        return
    node = crossing.document.node_at(("scheduler", "params", _KEY))
    value = None if node is None or node.start in crossing.context.unknown else node.value()
    if not warms_up(crossing.context.type_of("scheduler")) or isinstance(value, bool):
        return
    if isinstance(value, int | float) and value < _LEAST and value != 1:
        told = say(
            "`scheduler.params.{key}` is {least}, as {value} was taken until {checked_since}.",
            key=_KEY,
            least=_LEAST,
            value=json_text(value),
            checked_since=CHECKED_SINCE[_KEY],
        )
        yield put(("scheduler", "params", _KEY), _LEAST, told)
