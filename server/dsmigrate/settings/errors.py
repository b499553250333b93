"""The one error of this package."""

from __future__ import annotations


class SettingsError(ValueError):
    """A setting or flag cannot be used; the message names the place, the value, and what is allowed."""
