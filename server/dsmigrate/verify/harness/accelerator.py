"""Makes a surrounding ``torch.autocast`` region mean on the CPU what it means on a GPU.

``DeepSpeedEngine.forward`` switches a surrounding region off unless the config has ``torch_autocast.enabled``
(deepspeed/runtime/torch_autocast.py, ``autocast_if_enabled``). Its test is ``torch.is_autocast_enabled()``, which
without an argument answers for CUDA: on a CPU the engine never sees the region, and a conversion that only keeps the
region would train the same there and differently on every GPU.
"""

from __future__ import annotations

from typing import Any

TARGET = "deepspeed.runtime.torch_autocast"


class _Torch:
    """Stands for the ``torch`` module in the one module that is patched."""

    def __init__(self, torch: Any, accelerator: Any) -> None:
        self._torch = torch
        self._accelerator = accelerator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._torch, name)

    def is_autocast_enabled(self, device_type: str | None = None) -> bool:
        """As ``torch.is_autocast_enabled``, with the accelerator instead of CUDA as the default."""
        return bool(self._torch.is_autocast_enabled(device_type or self._accelerator().device_name()))


def answer_for_the_accelerator(module: Any) -> None:
    """Give the module a torch that answers for DeepSpeed's accelerator."""
    module.torch = _Torch(module.torch, module.get_accelerator)
