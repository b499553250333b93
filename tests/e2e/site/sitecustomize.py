"""Makes a surrounding ``torch.autocast`` region mean on the CPU what it means on a GPU.

``DeepSpeedEngine.forward`` runs under ``deepspeed.runtime.torch_autocast.autocast_if_enabled``, which switches a
surrounding region OFF unless the config has ``torch_autocast.enabled``. Its test is ``torch.is_autocast_enabled()``,
and without an argument that answers for CUDA. On a CPU the engine therefore never sees the region, and a conversion
that keeps the region but forgets the config key trains the same there and differently on every GPU.

Python imports this module at start-up when its folder is on ``PYTHONPATH``. It waits for that one module of
DeepSpeed and gives it a ``torch`` whose ``is_autocast_enabled()`` answers for DeepSpeed's own accelerator.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

TARGET = "deepspeed.runtime.torch_autocast"


class TorchOfTheAccelerator:
    """Stands for the ``torch`` module in the one module that is patched."""

    def __init__(self, torch: Any, accelerator: Any) -> None:
        self._torch = torch
        self._accelerator = accelerator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._torch, name)

    def is_autocast_enabled(self, device_type: str | None = None) -> bool:
        """As ``torch.is_autocast_enabled``, with the accelerator instead of CUDA as the default."""
        return bool(self._torch.is_autocast_enabled(device_type or self._accelerator().device_name()))


class PatchingLoader(Loader):
    """Loads the module as usual and then replaces its ``torch``."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        patched: Any = module
        patched.torch = TorchOfTheAccelerator(patched.torch, patched.get_accelerator)


class AutocastFinder(MetaPathFinder):
    """Finds the one module, once."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != TARGET:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        spec.loader = PatchingLoader(spec.loader)
        return spec


sys.meta_path.insert(0, AutocastFinder())
with contextlib.suppress(ModuleNotFoundError):
    import older_deepspeed  # noqa: F401 - only where DeepSpeed is so old that it needs it
