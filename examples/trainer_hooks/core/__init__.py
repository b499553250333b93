from .base import BaseTrainer
from .dist import cleanup, get_rank, setup

__all__ = ["BaseTrainer", "cleanup", "get_rank", "setup"]
