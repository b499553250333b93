"""Stands for Intel's extension of torch: up to 0.14.0 DeepSpeed has no accelerator for the CPU without it."""
