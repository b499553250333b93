"""DS8xx: who hands the config to DeepSpeed, and what becomes of `"auto"` on the way."""
