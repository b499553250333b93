"""One thing that completion offers."""

from __future__ import annotations

import enum
from typing import NamedTuple

from dsmigrate.document import TextEdit


class Kind(enum.Enum):
    """What an item is; clients draw each kind with a picture of its own."""

    KEY = "key"
    SECTION = "section"
    """A key whose value is an object."""
    VALUE = "value"
    CHOICE = "choice"
    """A value of a closed list."""
    TYPE = "type"
    """The name of an optimizer or scheduler."""
    SNIPPET = "snippet"
    """A whole section, ready to use."""
    FILE = "file"
    """A whole config."""


Data = tuple[str, ...]
"""What ``documentation`` needs to know of an item: its kind of text, then paths and names."""


class Item(NamedTuple):
    """An item: what is shown, and what accepting it does.

    ``new_text`` replaces the text from ``start`` to ``end``, a range on one line around the cursor; ``edits`` are made
    beside it, elsewhere. With ``is_snippet`` it is in the snippet syntax of the Language Server Protocol, with tab
    stops; otherwise plain text. Either has its full indents and line ends, as ``insertTextMode`` ``asIs`` wants them.
    ``description`` stands behind the label. ``trigger_again`` asks the client to complete again, at the new place.
    """

    label: str
    kind: Kind
    start: int
    end: int
    new_text: str
    is_snippet: bool
    filter_text: str
    sort_text: str
    detail: str = ""
    description: str = ""
    deprecated: bool = False
    preselect: bool = False
    data: Data = ()
    edits: tuple[TextEdit, ...] = ()
    trigger_again: bool = False
