"""How ranks share a model, and how it is compiled."""
