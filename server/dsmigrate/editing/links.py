"""Links in a config: addresses, files and folders that are there, and the pages of optimizer and scheduler types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dsmigrate.document import Scalar, Style
from dsmigrate.document.paths import Path as Place
from dsmigrate.editing.view import View
from dsmigrate.languages import say

DOCS = "https://github.com/dsmigrate/dsmigrate/blob/main/docs"
_WEB = ("https://", "http://")
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Link:
    """Offsets of the text inside its quotes, and where it leads: an address, or a file of this machine."""

    start: int
    end: int
    target: str | Path
    tooltip: str


def links(view: View) -> tuple[Link, ...]:
    """Return the links of a config, in order. Of paths only those that exist count; nothing is opened."""
    return tuple(link for path, _, node in view.document.walk() for link in _link(view, path, node))


def _link(view: View, path: Place, node: object) -> Iterator[Link]:
    if not path or not isinstance(node, Scalar):
        return
    text = node.value()
    if not isinstance(text, str) or not text or len(text) > _LONGEST:
        return
    start, end = _inside(node)
    if text.startswith(_WEB):
        if not any(char.isspace() for char in text):
            yield Link(start, end, text, "Open")
        return
    if path in {("optimizer", "type"), ("scheduler", "type")}:
        facts = view.known.optimizer(text) if path[0] == "optimizer" else view.known.scheduler(text)
        if facts is not None:
            page = f"{DOCS}/keys/{facts.kind}_types.md#{facts.name.lower()}-{facts.kind}"
            yield Link(start, end, page, say("What {facts_name} is, with its parameters", facts_name=facts.name))
        return
    key = view.known.key(path)
    if key is not None and key.unit == "path":
        found = _existing(view.folder, text)
        if found is not None:
            yield Link(start, end, found, say("Open the folder") if found.is_dir() else say("Open the file"))


def _inside(node: Scalar) -> tuple[int, int]:
    quoted = node.style in {Style.DOUBLE, Style.SINGLE} and node.end - node.start > 1
    return (node.start + 1, node.end - 1) if quoted else (node.start, node.end)


def _existing(folder: Path | None, text: str) -> Path | None:
    path = Path(text)
    if not path.is_absolute():
        if folder is None:
            return None
        path = folder / path
    try:
        return path if path.exists() else None
    except (OSError, ValueError):  # a name too long, or with a NUL
        return None
