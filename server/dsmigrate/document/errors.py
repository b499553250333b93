"""The exceptions of this package."""

from __future__ import annotations


class DocumentError(ValueError):
    """Bytes that are no text; ``offset`` is the byte where that shows."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class EditError(ValueError):
    """An edit that cannot be made; the text is as it was."""


class PathError(ValueError):
    """Text that is no path; ``offset`` is the character where that shows."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
