"""Messages in the language of the reader: English as it is written in the code, others from a catalogue.

``say`` stands at every sentence that people read. The sentence itself, with names in braces for what is filled in, is
what the catalogue is asked by, as in gettext; what is filled in was made by ``say`` as well. Nothing is loaded, and
nothing but ``str.format`` happens, as long as nobody asks for another language.
"""

from __future__ import annotations

from dsmigrate.languages.spoken import ENGLISH, LANGUAGES, forgotten, mark, say, spoken, tag_of, use, using

__all__ = ["ENGLISH", "LANGUAGES", "forgotten", "mark", "say", "spoken", "tag_of", "use", "using"]
