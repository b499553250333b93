"""The optimizer section: which class it builds, and with which parameters."""
