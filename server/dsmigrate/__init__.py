"""dsmigrate: moves PyTorch DDP training to DeepSpeed, and explains DeepSpeed configs."""

__version__ = "0.1.0"
