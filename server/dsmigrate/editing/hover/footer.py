"""The last lines of a hover: the keys to look at next, the page, and what it is told for."""

from __future__ import annotations

from collections.abc import Sequence

from dsmigrate.editing.hover.links import Links
from dsmigrate.editing.markdown import safe
from dsmigrate.editing.urls import url_for_key
from dsmigrate.editing.view import View
from dsmigrate.languages import say

_MOST_RELATED = 4


def footer(view: View, links: Links, word: str, url: str) -> str:
    """Return the link to all that is known of ``word``, with the release and the consumer, and why these were taken."""
    told = [
        links.to(say("More"), word, url),
        _because(f"DeepSpeed {view.known.version}", view.why_version),
    ]
    return " · ".join([*told, _because(view.consumer.title, view.why_consumer)])


def related(view: View, links: Links, paths: Sequence[str], beside: str = "") -> str:
    """Return links to the keys to look at next; those in ``beside``, or in its section, go by their name."""
    if not paths:
        return ""
    sections = [f"{path}." for path in (beside, beside.rpartition(".")[0]) if path]
    shown = [_linked(view, links, path, sections) for path in paths[:_MOST_RELATED]]
    return say("See also {paths}.", paths=say(", ").join(shown))


def _linked(view: View, links: Links, path: str, sections: Sequence[str]) -> str:
    name = next((path.removeprefix(section) for section in sections if path.startswith(section)), path)
    text = f"`{name}`"
    key = view.known.key(path) if links.in_text else None
    return text if key is None else links.to(text, path, url_for_key(key, view.known))


def _because(what: str, why: str) -> str:
    return say("{what} ({why})", what=what, why=safe(why)) if why else what
