"""The error of this package."""

from __future__ import annotations


class DerivationError(Exception):
    """A release that cannot be derived; the message names it, what was tried and what to do."""
