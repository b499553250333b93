"""Where the words of a hover lead: to their page, on the web or inside of the editor."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Links:
    """Links to what is known of a word.

    ``command`` is the command of the client that shows it, "" for a client without one, where links lead to the web;
    it is called with the word and ``about``, the address of the config. ``in_text`` is whether words in a sentence are
    links: without Markdown each would carry its address.
    """

    command: str = ""
    about: str = ""
    in_text: bool = True

    def to(self, text: str, word: str, url: str) -> str:
        """Return a link to what is known of ``word``, whose page is ``url``."""
        if not self.command:
            return f"[{text}]({url})"
        arguments = [word, self.about] if self.about else [word]
        return f"[{text}](command:{self.command}?{quote(json.dumps(arguments), safe='')})"
