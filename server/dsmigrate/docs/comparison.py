"""What the diff says about the configs that a page shows, below them."""

from __future__ import annotations

import re

from dsmigrate.diff.formats import text
from dsmigrate.diff.job import Source, Versions, compare
from dsmigrate.knowledge import knowledge
from dsmigrate.settings.diff import DiffSettings, with_diff_setting

_BLOCK = r"^<!-- %s -->\n```%s\n(.*?)^```$"
_OLD = re.compile(_BLOCK % ("old", "json"), re.MULTILINE | re.DOTALL)
_NEW = re.compile(_BLOCK % ("new", "json"), re.MULTILINE | re.DOTALL)
_SAID = re.compile(_BLOCK % ("said(?P<settings>[^>]*)", "text"), re.MULTILINE | re.DOTALL)


def refreshed(page: str) -> str:
    """Return a page with its block after the mark ``said`` made anew from those after ``old`` and ``new``.

    A mark is ``<!-- old -->``; the last one may hold settings: ``<!-- said parameters=7b world-size=8 -->``.
    The release is the newest known.
    Raises ValueError when a block is missing.
    """
    old, new, said = (pattern.search(page) for pattern in (_OLD, _NEW, _SAID))
    if old is None or new is None or said is None:
        raise ValueError("the page has no two configs, or no comparison of them, to make anew")
    settings = DiffSettings()
    for word in said["settings"].split():
        name, _, value = word.partition("=")
        settings = with_diff_setting(settings, name, int(value) if value.isdecimal() else value)
    newest = knowledge().version
    sources = Source("old.json", old[1].encode()), Source("new.json", new[1].encode())
    compared = compare(*sources, settings, Versions(newest, newest, "the newest known"))
    lines = ["".join(piece for piece, _ in line) for line in text.render(compared)]
    return page[: said.start(2)] + "\n".join(lines) + "\n" + page[said.end(2) :]
