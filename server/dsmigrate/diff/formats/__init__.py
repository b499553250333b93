"""Comparisons for people and programs, one format per file."""
