"""Reports of a conversion, one module per format."""
