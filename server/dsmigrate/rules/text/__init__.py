"""Rules about the text: what no loader reads, what only DeepSpeed's reads, and what Hjson makes of words."""
