"""One module per feature of the protocol; ``registry.load`` imports them all."""
