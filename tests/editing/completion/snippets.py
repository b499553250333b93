"""The text that a snippet leaves when every placeholder is taken as it is."""

from __future__ import annotations

import re

_STOP = re.compile(r"\\(?P<kept>[\\$}])|\$\{\d+:(?P<inner>(?:[^\\}]|\\.)*)\}|\$\d+")
_ESCAPE = re.compile(r"\\(.)")


def expanded(snippet: str) -> str:
    """Return the plain text of a snippet of the Language Server Protocol; placeholders hold no others here."""

    def plain(found: re.Match[str]) -> str:
        if found["kept"] is not None:
            return found["kept"]
        return _ESCAPE.sub(r"\1", found["inner"] or "")

    return _STOP.sub(plain, snippet)
