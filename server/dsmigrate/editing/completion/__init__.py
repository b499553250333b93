"""Completion: the keys, values, sections and files that could be written at an offset of a config.

``complete`` gives the items, cheaply; ``documentation`` the text beside one of them, when a client asks for it.
"""

from dsmigrate.editing.completion.complete import complete
from dsmigrate.editing.completion.documentation import documentation
from dsmigrate.editing.completion.item import Data, Item, Kind

__all__ = ["Data", "Item", "Kind", "complete", "documentation"]
