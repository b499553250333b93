from .registry import build_model, build_optimizer, build_schedule

__all__ = ["build_model", "build_optimizer", "build_schedule"]
