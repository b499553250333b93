"""A config without "auto", for plain DeepSpeed: the values that the Trainer takes by default, and DeepSpeed's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsmigrate.document import EditError, PathError, parse_path, render_path
from dsmigrate.editing.actions.autos import Resolved, resolved
from dsmigrate.editing.actions.draft import Step, put, remove, started, why_not
from dsmigrate.editing.actions.judging import settled
from dsmigrate.editing.actions.model import REWRITE, Action, Feature, Here, Outcome
from dsmigrate.editing.view import View
from dsmigrate.knowledge.wording import json_text
from dsmigrate.languages import mark, say

NAME = "resolve-auto"
_NAMED = 3
_PRECISION = mark(
    "The arguments of the script decided on the precision: switch on `bf16` or `fp16` if it trains in one."
)


def _offer(view: View, here: Here) -> Iterator[Action]:
    found = resolved(view)
    if not found:
        return
    reason = why_not(view.document)
    one = next((one for one in found if one.path == here.path), None)
    if one is not None and not one.stays and len(found) > 1:
        yield Action(_title(one), REWRITE, (NAME, render_path(one.path)), disabled=reason)
    left = [one for one in found if one.stays]
    able = len(left) < len(found)
    title = say('Replace "auto" by values for plain DeepSpeed')
    if able and left:
        title += say(", except for {names}", names=_names(left))
    yield Action(title, REWRITE, (NAME, ""), disabled=reason or ("" if able else left[0].why))


def _title(one: Resolved) -> str:
    name = f"`{render_path(one.path[-1:])}`"
    return (
        say('Leave out {name}: "auto" has no value here', name=name)
        if one.goes
        else say("Write `{one}` for {name}", one=json_text(one.value), name=name)
    )


def _names(left: Sequence[Resolved]) -> str:
    names = [f"`{render_path(one.path[-1:])}`" for one in left]
    if len(names) > _NAMED:
        return say("{names} and {number} more", names=say(", ").join(names[:_NAMED]), number=len(names) - _NAMED)
    return (
        say("{names} and {names_2}", names=say(", ").join(names[:-1]), names_2=names[-1])
        if len(names) > 1
        else names[0]
    )


def _carry_out(view: View, name: str) -> Outcome:
    try:
        wanted = parse_path(name)
        chosen = [one for one in resolved(view) if not name or one.path == wanted]
        left = tuple(one.why for one in chosen if one.stays)
        left += (say(_PRECISION),) if any(one.path[1:] == ("enabled",) and one.value is False for one in chosen) else ()
        draft = started(view.document, view.context.unknown).after(_step(one) for one in chosen if not one.stays)
    except (EditError, PathError) as error:
        return Outcome(left=(str(error),))
    return settled(view.settings, draft, left=left)


def _step(one: Resolved) -> Step:
    return remove(one.path, one.why) if one.goes else put(one.path, one.value, one.why)


FEATURE = Feature(NAME, REWRITE, _offer, _carry_out, (str,))
