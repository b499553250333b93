"""Offload of optimizer states and parameters to host memory and NVMe, and its disk I/O (DS5xx)."""
