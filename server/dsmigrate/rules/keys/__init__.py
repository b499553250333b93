"""Rules about keys: unknown, misplaced, removed, deprecated, renamed, dead."""
