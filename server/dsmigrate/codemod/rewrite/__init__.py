"""Decisions to edits to bytes: the only place that knows LibCST."""
