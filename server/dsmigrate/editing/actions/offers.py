"""What could be done at a place, and doing it."""

from __future__ import annotations

from collections.abc import Collection

from dsmigrate.editing.actions import (
    fix_all,
    precision,
    quick_fix,
    repeated_defaults,
    resolve_auto,
    stage,
    suppress,
    upgrade_config,
    use_auto,
    write_default,
)
from dsmigrate.editing.actions.draft import why_not
from dsmigrate.editing.actions.model import REWRITE, Action, Data, Feature, Outcome
from dsmigrate.editing.actions.where import here
from dsmigrate.editing.view import View
from dsmigrate.languages import say

FEATURES: tuple[Feature, ...] = (
    quick_fix.FEATURE,
    fix_all.OF_ONE_RULE,
    suppress.FEATURE,
    fix_all.OF_EVERY_RULE,
    stage.FEATURE,
    precision.FEATURE,
    write_default.FEATURE,
    resolve_auto.FEATURE,
    use_auto.FEATURE,
    repeated_defaults.FEATURE,
    upgrade_config.FEATURE,
)
"""In the order in which they are shown."""

_BY_NAME = {feature.name: feature for feature in FEATURES}


def offered(view: View, start: int, end: int, kinds: Collection[str] | None) -> tuple[Action, ...]:
    """Return the actions at a range, of ``kinds`` and what lies below them; None takes all."""
    place = here(view.document, start, end)
    return tuple(
        action for feature in FEATURES if _is_asked_for(feature.kind, kinds) for action in feature.offer(view, place)
    )


def carried_out(view: View, data: Data) -> Outcome:
    """Return what the action of some data comes to; data of no action comes to nothing."""
    name, *rest = data or ("",)
    feature = _BY_NAME.get(str(name))
    if feature is None or tuple(map(type, rest)) != feature.takes:
        return Outcome(left=(say("There is no such action."),))
    reason = why_not(view.document) if feature.kind == REWRITE else ""
    return Outcome(left=(reason,)) if reason else feature.carry_out(view, *rest)


def _is_asked_for(kind: str, kinds: Collection[str] | None) -> bool:
    return kinds is None or any(not asked or kind == asked or kind.startswith(f"{asked}.") for asked in kinds)
