"""What ``dsmigrate explain`` has to say: finding the subject of a word, and telling it as Markdown or as JSON."""

from __future__ import annotations

from dsmigrate.explain.subject import Messages, NothingToExplainError, Overview, ParameterOf, Subject, find

__all__ = ["Messages", "NothingToExplainError", "Overview", "ParameterOf", "Subject", "find"]
