"""Checking config files: which files are configs, for whom they are, what the rules say, and how it is reported."""
