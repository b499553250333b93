"""What an editor asks of a config, without a protocol: offsets in, plain data out.

Every module answers one question about a ``View``: what is here (hover), what could be written here (completion), what
could be done (actions), what the file comes to (hints, summary). Offsets are code points of the text.
"""

from dsmigrate.editing.view import View

__all__ = ["View"]
