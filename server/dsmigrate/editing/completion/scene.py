"""What decides how an item looks: where it goes, how the text around is laid out, what the file says."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dsmigrate.document import Object, layout
from dsmigrate.editing.completion.body import Body
from dsmigrate.editing.completion.item import Data, Item, Kind
from dsmigrate.editing.completion.situation import Situation
from dsmigrate.editing.completion.spot import Spot, Wants
from dsmigrate.editing.completion.writing import Page, page
from dsmigrate.editing.view import View
from dsmigrate.knowledge import Consumer, Knowledge


@dataclass(frozen=True, slots=True)
class Scene:
    """A spot, the manner of the text there, and what the file says."""

    spot: Spot
    page: Page
    situation: Situation

    @property
    def known(self) -> Knowledge:
        """The keys of the release."""
        return self.situation.known

    @property
    def consumer(self) -> Consumer:
        """Who reads the file."""
        return self.situation.consumer

    @property
    def container(self) -> Object | None:
        """The object around the spot; None where there is none."""
        return self.spot.container if isinstance(self.spot.container, Object) else None

    def item(
        self,
        label: str,
        kind: Kind,
        text: str,
        *,
        sort: str,
        filters: str | None = None,
        detail: str = "",
        description: str = "",
        data: Data = (),
        snippet: bool | None = None,
        again: bool = False,
    ) -> Item:
        """Return the item that writes ``text`` at the spot, with what has to stand around it.

        ``filters`` is the label unless it is given; it starts with the quote that is typed. ``snippet`` is whether
        ``text`` is one, by default as the client likes it.
        """
        spot = self.spot
        is_snippet = self.page.snippets if snippet is None else snippet
        return Item(
            label,
            kind,
            spot.start,
            spot.end,
            f"{spot.lead}{text}{spot.tail}",
            is_snippet,
            f"{spot.quote}{label}{spot.quote}" if filters is None else filters,
            sort,
            detail,
            description,
            deprecated=False,
            preselect=False,
            data=data,
            edits=spot.edits,
            trigger_again=again and is_snippet,
        )

    def member(self, name: str, body: Body) -> str:
        """Return the text of a key with its value."""
        spelling = self.page.spelling
        return f"{spelling.key(name)}{spelling.colon}{self.page.text(body)}"


def scene(view: View, spot: Spot, *, snippets: bool) -> Scene:
    """Return the scene of a spot of ``view``."""
    manner = page(spot, snippets=snippets)
    if spot.wants is Wants.KEY and isinstance(spot.container, Object):
        spot, manner = _spread(spot, spot.container, manner)
    return Scene(spot, manner, Situation(view, spot.document))


def _spread(spot: Spot, container: Object, manner: Page) -> tuple[Spot, Page]:
    """Put what comes first into an object on a line of its own, unless the whole file stands on one line."""
    text, root = spot.document.text, spot.document.root
    if not container.has_braces or len(container) > (spot.member is not None) or root is None or container.comments:
        return spot, manner
    if container != root and not layout.has_line_end(text, root.start, root.end):
        return spot, manner
    outer = layout.line_indent(text, container.start)
    lead, tail = spot.lead, spot.tail
    if not layout.has_line_end(text, container.inner_start, spot.start):
        lead = f"{manner.newline}{outer}{manner.unit}"
        manner = replace(manner, indent=f"{outer}{manner.unit}")
    if not tail and container.is_closed and not layout.has_line_end(text, spot.end, container.inner_end):
        tail = f"{manner.newline}{outer}"
    return replace(spot, lead=lead, tail=tail), replace(manner, inline=False)
