"""Messages in the language of the reader: English as it is written in the code, others from a catalogue.

``say`` stands at every sentence that people read. The sentence itself, with names in braces for what is filled in, is
what the catalogue is asked by, as in gettext; what is filled in was made by ``say`` as well. Nothing is loaded, and
nothing but ``str.format`` happens, as long as nobody asks for another language.

Decisions of the codemod are made in English, with ``told`` where something is filled in, and said in the reader's
language when a result is made of them (``retold``).
"""

from __future__ import annotations

from dsmigrate.languages.spoken import ENGLISH, LANGUAGES, forgotten, mark, say, spoken, tag_of, use, using
from dsmigrate.languages.telling import Told, retold, told

__all__ = [
    "ENGLISH",
    "LANGUAGES",
    "Told",
    "forgotten",
    "mark",
    "retold",
    "say",
    "spoken",
    "tag_of",
    "told",
    "use",
    "using",
]
