"""The last line of a hover: the page, and what it is told for."""

from __future__ import annotations

from dsmigrate.editing.markdown import safe
from dsmigrate.editing.view import View
from dsmigrate.languages import say


def footer(view: View, url: str) -> str:
    """Return the link to the page with the release and the consumer, and why these were taken."""
    told = [
        say("[Documentation]({url})", url=url),
        _because(f"DeepSpeed {view.known.version}", view.why_version),
    ]
    return " · ".join([*told, _because(view.consumer.title, view.why_consumer)])


def _because(what: str, why: str) -> str:
    return say("{what} ({why})", what=what, why=safe(why)) if why else what
