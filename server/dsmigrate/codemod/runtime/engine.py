"""Which wrapper a model has, for modules that converted scripts share with scripts that stay as they are."""

from __future__ import annotations


def is_engine(model: object) -> bool:
    """Whether a model is DeepSpeed's engine, not a wrapper of torch's or a plain module. Does not import DeepSpeed."""
    return any(cls.__module__.startswith("deepspeed.") for cls in type(model).__mro__)
