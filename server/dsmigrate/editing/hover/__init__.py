"""Hover: what lies under the cursor, what it does in this file, and what is known of it."""

from dsmigrate.editing.hover.hover import Hover, hover_at
from dsmigrate.editing.markdown import plain

__all__ = ["Hover", "hover_at", "plain"]
