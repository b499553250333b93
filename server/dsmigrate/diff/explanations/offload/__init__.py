"""Optimizer states and parameters on the host and on NVMe: where, how, and what it takes."""
