"""Changes of a config as text edits that leave every other byte alone.

Each function takes a document and returns edits of its text, in the text's own layout, or raises EditError. Each reads
the result again before it returns: an edit that would not do exactly what was asked for is refused.
"""

from dsmigrate.document.changing import move, rename, replace
from dsmigrate.document.inserting import insert
from dsmigrate.document.removing import remove
from dsmigrate.document.spelling import Spelling
from dsmigrate.document.textedits import TextEdit, apply, compose

__all__ = ["Spelling", "TextEdit", "apply", "compose", "insert", "move", "remove", "rename", "replace"]
