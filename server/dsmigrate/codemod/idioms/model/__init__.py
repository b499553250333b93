"""The wrapped model and everything that knows of the wrapper."""
