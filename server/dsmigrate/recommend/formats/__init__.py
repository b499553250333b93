"""Recommendations as text for terminals, and as JSON."""
