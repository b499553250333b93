"""What a training does: the script run abstractly from its entry, and the events of that run. Knows no DeepSpeed."""
