"""The config of an older release taken to the newest one."""

from __future__ import annotations

from collections.abc import Iterator

from dsmigrate.editing.actions.model import REWRITE, Action, Feature, Here, Outcome
from dsmigrate.editing.actions.upgrading.run import has_work, upgraded
from dsmigrate.editing.view import View
from dsmigrate.knowledge import knowledge
from dsmigrate.knowledge.versions import order
from dsmigrate.languages import say

NAME = "upgrade"


def _offer(view: View, _: Here) -> Iterator[Action]:
    newest = knowledge().version
    origin = before(view)
    if not view.whole or order(origin) >= order(newest) or view.context.root is None:
        return
    memory = view.context.memory
    if NAME not in memory:
        memory[NAME] = has_work(view.document, origin, newest, view.consumer, view.context.unknown)
    if memory[NAME]:
        title = say("Upgrade this config from DeepSpeed {origin} to {newest}", origin=origin, newest=newest)
        yield Action(title, REWRITE, (NAME, newest))


def before(view: View) -> str:
    """Return the release that the config is for: the one that is said to come before, else the one it is looked at."""
    said = view.settings.facts.before
    try:
        return knowledge(said).version if said else view.known.version
    except ValueError:
        return view.known.version


def _carry_out(view: View, version: str) -> Outcome:
    try:
        return upgraded(
            view.document,
            before(view),
            version,
            view.consumer,
            facts=view.settings.facts,
            unknown=view.context.unknown,
        )
    except ValueError as error:
        return Outcome(left=(str(error),))


FEATURE = Feature(NAME, REWRITE, _offer, _carry_out, (str,))
