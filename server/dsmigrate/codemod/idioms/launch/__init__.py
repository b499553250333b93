"""Processes and process groups."""
