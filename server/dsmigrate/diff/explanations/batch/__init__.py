"""How many samples an optimizer step takes, and how they are divided."""
