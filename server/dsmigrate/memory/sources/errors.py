"""The one error of this package."""

from __future__ import annotations


class ModelError(ValueError):
    """A model cannot be read or is not known; the message names the file, the place and what to write instead."""
