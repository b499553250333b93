"""What checkpoints are written, and which can be read."""
