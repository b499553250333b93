"""The scheduler section: which schedule it builds, and with which parameters."""
