"""Copies of the model that can be pickled and compiled."""

from __future__ import annotations

import copy
from typing import Any


def copy_of_module(module: Any) -> Any:
    """A deep copy of ``engine.module``, for files and averages: without the hooks of the engine and of this file.

    Neither can be pickled, nor compiled by ``torch.jit.script``. Not at ZeRO 3, where the weights are partitioned.
    Reads the dictionaries in which torch keeps the hooks of a module; there is no public way to list them.
    """
    copied = copy.deepcopy(module)
    for part in copied.modules():
        for kind in ("forward_pre_hooks", "forward_hooks", "state_dict_hooks", "load_state_dict_pre_hooks",
                     "load_state_dict_post_hooks"):  # fmt: skip
            hooks = getattr(part, f"_{kind}")
            for key, hook in list(hooks.items()):
                function = getattr(hook, "hook", hook)  # torch wraps those that get the module
                of_engine = getattr(function, "__qualname__", "").startswith("DeepSpeedEngine.")
                if of_engine or getattr(function, "__module__", None) == __name__:
                    del hooks[key]
                    getattr(part, f"_{kind}_with_kwargs", {}).pop(key, None)
    return copied
