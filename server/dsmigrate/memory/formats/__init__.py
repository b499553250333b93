"""Estimates of memory as text for terminals, as JSON, and as pictures."""
