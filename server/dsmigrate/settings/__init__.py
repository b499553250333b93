"""The options of a run: from flags, from ``[tool.dsmigrate]`` in pyproject.toml, or from dsmigrate.toml."""
