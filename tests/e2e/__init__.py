"""End-to-end tests: real torchrun, real DeepSpeed, two CPU processes."""
