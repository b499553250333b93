"""Backward, step, zeroed gradients, windows of accumulation."""
