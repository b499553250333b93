"""A config taken from one DeepSpeed release to a later one, so that it loads there and trains as before."""
