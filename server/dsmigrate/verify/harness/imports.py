"""Calls a function with a module as soon as the script, or one of its libraries, has imported it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Patch = Callable[[Any], None]


class _PatchingLoader(Loader):
    """Loads as the module's own loader does, and calls the function afterwards."""

    def __init__(self, loader: Any, patch: Patch) -> None:
        self._loader = loader
        self._patch = patch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self._loader.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._patch(module)


class AfterImport(MetaPathFinder):
    """A finder that steps aside for all modules but the given ones."""

    def __init__(self, patches: dict[str, Patch]) -> None:
        self._patches = dict(patches)

    def install(self) -> None:
        """Take effect for everything that is imported from now on, and for what something else has imported already."""
        for name in [name for name in self._patches if name in sys.modules]:
            self._patches.pop(name)(sys.modules[name])
        sys.meta_path.insert(0, self)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        patch = self._patches.pop(fullname, None)
        if patch is None:
            return None
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        spec.loader = _PatchingLoader(spec.loader, patch)
        return spec
