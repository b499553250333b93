"""The optimizer and what ZeRO makes of it."""
