"""Clipped gradients and their norm."""
