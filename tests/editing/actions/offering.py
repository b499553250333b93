"""Actions at a marked place, by their titles."""

from __future__ import annotations

from dsmigrate.document import apply
from dsmigrate.editing import View
from dsmigrate.editing.actions import Action, Outcome, actions, outcome
from dsmigrate.rules import Settings
from tests.editing.marked import marked


def offered(text: str, kind: str, settings: Settings | None = None) -> dict[str, Action]:
    """Return the actions of a feature, by name, at the ``|`` of a text, by their titles."""
    view, offset = marked(text, settings)
    return {action.title: action for action in actions(view, offset, offset) if action.data[0] == kind}


def carried_out(text: str, title: str, settings: Settings | None = None) -> Outcome:
    """Return what the action with a title, or with the beginning of one, comes to at the ``|`` of a text."""
    view, offset = marked(text, settings)
    return outcome(view, found(view, offset, title).data)


def changed(text: str, title: str, settings: Settings | None = None) -> str:
    """Return the text, without its ``|``, after the action with a title, or with the beginning of one."""
    view, offset = marked(text, settings)
    edits = outcome(view, found(view, offset, title).data).edits
    assert edits, "nothing is changed"
    return apply(view.text, edits)


def found(view: View, offset: int, title: str) -> Action:
    every = {action.title: action for action in actions(view, offset, offset)}
    if title in every:
        return every[title]
    begun = [action for name, action in every.items() if name.startswith(title)]
    assert len(begun) == 1, list(every)
    return begun[0]
