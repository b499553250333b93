"""A migration of many files: which, with which options, on all cores, and what is written where."""
