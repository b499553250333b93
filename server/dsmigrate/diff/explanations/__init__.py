"""One explanation per file, by what it is about."""
