"""The command line: thin commands over the packages beside it. Nothing imports this package."""
