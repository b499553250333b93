"""How well the rules agree with the real DeepSpeed: generated configs, planted faults, a judge, and a comparison."""
