"""Trains the original and the converted script side by side, and says where they part and why.

This side never imports torch: it starts processes, reads their records and compares. ``harness`` is the other side.
"""
