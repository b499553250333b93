"""Which optimizer is built, and with which parameters."""
