"""Rules about batch sizes, accumulation, and how gradients are reduced and reported."""
