"""One conversion step per file; each carries the MG codes it decides."""
