"""Hover: what lies under the cursor, what it does in this file, and what is known of it."""

from dsmigrate.editing.hover.hover import Hover, hover_at
from dsmigrate.editing.hover.links import Links
from dsmigrate.editing.markdown import plain

__all__ = ["Hover", "Links", "hover_at", "plain"]
