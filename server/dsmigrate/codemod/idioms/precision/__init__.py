"""Autocast, gradient scalers, half precision."""
