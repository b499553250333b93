"""Files of weights and states, which stay files."""
