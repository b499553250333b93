"""Reports of a check, one module per format. Each has ``render``, from what was checked to text."""
