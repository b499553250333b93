"""What can be done to a config at a place: fixes, suppressions and rewritings, offered at once and worked out late.

``actions`` lists them without an edit; ``resolve`` gives the edits of one of them from its data, ``outcome`` with them
what was done and what is left for the person. The features are imported by the first call.
"""

from __future__ import annotations

from collections.abc import Collection

from dsmigrate.document import Document, TextEdit
from dsmigrate.editing.actions.model import Action, Data, Mended, Outcome
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Facts

__all__ = ["Action", "Data", "Mended", "Outcome", "actions", "outcome", "resolve", "upgrade"]


def actions(view: View, start: int, end: int, *, kinds: Collection[str] | None = None) -> tuple[Action, ...]:
    """Return what could be done at a range of the text, in the order to show it in.

    ``kinds`` limits it to kinds and what lies below them (``refactor`` takes ``refactor.rewrite``); None takes all.
    """
    from dsmigrate.editing.actions import offers  # noqa: PLC0415 - imports every feature

    return offers.offered(view, start, end, kinds)


def resolve(view: View, data: Data) -> tuple[TextEdit, ...]:
    """Return the edits of an action, from its data; () when it cannot be done (any more)."""
    return outcome(view, data).edits


def outcome(view: View, data: Data) -> Outcome:
    """Return the edits of an action with what they do, and what is left for the person or why there are none."""
    from dsmigrate.editing.actions import offers  # noqa: PLC0415 - imports every feature

    return offers.carried_out(view, data)


def upgrade(
    document: Document,
    from_version: str,
    to_version: str,
    consumer: Consumer = Consumer.DEEPSPEED,
    *,
    facts: Facts | None = None,
    unknown: frozenset[int] = frozenset(),
) -> Outcome:
    """Return what takes a config from one release to a later one: the edits, what they do, what is left for the person.

    The result loads in the new release if the config did in the old one, as far as nothing is left, and trains as it
    did there. ``unknown`` is as for Context. Raises ValueError for a text that is no version, and for a release that is
    not known.
    """
    from dsmigrate.editing.actions.upgrading import run  # noqa: PLC0415 - reads rules

    return run.upgraded(document, from_version, to_version, consumer, facts=facts, unknown=unknown)
