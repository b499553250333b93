"""Autocast in releases of DeepSpeed that switch the script's region off and have no working one of their own."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any


def enter_in_forward(model: Any, context: AbstractContextManager[Any]) -> None:
    """Run the model's forward inside ``context``. Before deepspeed.initialize; for DeepSpeed 0.17.2 to 0.17.5.

    The engine of these releases switches a region around its own forward off; ``torch_autocast`` in the config is the
    public way from 0.17.6 on.
    """
    forward = model.forward

    @functools.wraps(forward)
    def entered(*args: Any, **kwargs: Any) -> Any:
        with context:
            return forward(*args, **kwargs)

    model.forward = entered
