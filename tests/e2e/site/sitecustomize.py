"""Makes DeepSpeed train on the CPU as on a GPU, in every process of the tests.

A surrounding ``torch.autocast`` region means on the CPU what it means on a GPU.
``DeepSpeedEngine.forward`` runs under ``deepspeed.runtime.torch_autocast.autocast_if_enabled``, which switches a
surrounding region OFF unless the config has ``torch_autocast.enabled``. Its test is ``torch.is_autocast_enabled()``,
and without an argument that answers for CUDA. On a CPU the engine therefore never sees the region, and a conversion
that keeps the region but forgets the config key trains the same there and differently on every GPU.

The module gets a ``torch`` whose ``is_autocast_enabled()`` answers for DeepSpeed's own accelerator.

``deepspeed.comm.torch`` builds an operator for inference on one machine: minutes of a compiler on a fresh one, and
66 MiB of shared memory that each process leaves behind. No training uses it, and it is not built.

Python imports this module at start-up when its folder is on ``PYTHONPATH``. It waits for these two modules.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


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


def _autocast(module: Any) -> None:
    module.torch = TorchOfTheAccelerator(module.torch, module.get_accelerator)


def _no_shared_memory(module: Any) -> None:
    module.build_shm_op = lambda: None


PATCHES: dict[str, Callable[[Any], None]] = {
    "deepspeed.runtime.torch_autocast": _autocast,
    "deepspeed.comm.torch": _no_shared_memory,
}


class PatchingLoader(Loader):
    """Loads a module as usual and then patches it."""

    def __init__(self, loader: Loader, patch: Callable[[Any], None]) -> None:
        self._loader = loader
        self._patch = patch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._patch(module)


class PatchingFinder(MetaPathFinder):
    """Finds the modules that are patched."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        patch = PATCHES.get(fullname)
        spec = None if patch is None else PathFinder.find_spec(fullname, path, target)
        if patch is not None and spec is not None and spec.loader is not None:
            spec.loader = PatchingLoader(spec.loader, patch)
        return spec


sys.meta_path.insert(0, PatchingFinder())
with contextlib.suppress(ModuleNotFoundError):
    import older_deepspeed  # noqa: F401 - only where DeepSpeed is so old that it needs it
