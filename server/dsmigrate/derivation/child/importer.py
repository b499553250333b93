"""Which modules of the release run for real, and which are stubs.

A module runs when it says what a config means: every ``config``, ``…_config``, ``constants`` and ``config_utils``, and
the few modules named in ``READERS`` that read the dictionaries at run time. All others, torch and every other library
are stubs, so that nothing heavy is needed and nothing of the release is executed but config code.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from dsmigrate.derivation.child.stubs import StubModule, torch_module

ENTRY = "deepspeed.entry"
"""The name under which the release's own ``deepspeed/__init__.py`` runs, beside the package that stands for it."""
NAMED_FOR_CONFIG = re.compile(r"(?:^|_)(?:config|configs|constants|config_utils)$")
READERS = frozenset(
    {
        "deepspeed.compression.compress",
        "deepspeed.elasticity.elasticity",
        "deepspeed.module_inject.auto_ep_presets.base",
        "deepspeed.moe.ep_experts",
        "deepspeed.pydantic_v1",
        "deepspeed.runtime.compiler",
        "deepspeed.runtime.dataloader",
        "deepspeed.runtime.engine",
        "deepspeed.runtime.fp16.loss_scaler",
        "deepspeed.runtime.pipe.engine",
        "deepspeed.runtime.data_pipeline.curriculum_scheduler",
        "deepspeed.runtime.data_pipeline.data_routing.basic_layer",
        "deepspeed.runtime.data_pipeline.data_routing.scheduler",
        "deepspeed.runtime.data_pipeline.data_sampling.data_sampler",
        "deepspeed.runtime.data_pipeline.data_sampling.variable_batch_size_and_lr",
        "deepspeed.runtime.tensor_parallel.init_utils",
        ENTRY,
    }
)
ALLOWED = frozenset({"pydantic", "pydantic_core", "typing_extensions", "annotated_types", "typing_inspection"})


class PackageModule(ModuleType):
    """A package of the release whose ``__init__`` is not run: its names come from its modules."""

    def __init__(self, name: str, finder: ReleaseFinder) -> None:
        super().__init__(name)
        self.__path__ = []
        self._finder = finder

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        value = self._finder.attribute(self.__name__, name)
        setattr(self, name, value)
        return value


class ReleaseFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of the release in ``root``, and gives stubs for everything that is not the standard library."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, name: str) -> Path:
        """Return where module ``name`` lies in the release, whether it exists or not."""
        return self.root.joinpath(*("deepspeed.__init__" if name == ENTRY else name).split(".")).with_suffix(".py")

    def is_real(self, name: str) -> bool:
        """Return whether module ``name`` of the release is executed."""
        last = name.rpartition(".")[2]
        return (bool(NAMED_FOR_CONFIG.search(last)) or name in READERS) and self.path(name).is_file()

    def is_package(self, name: str) -> bool:
        """Return whether ``name`` is a package of the release."""
        return self.root.joinpath(*name.split("."), "__init__.py").is_file()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the protocol of finders
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """Answer for the release and for libraries; leave the standard library and pydantic to the interpreter."""
        top = fullname.partition(".")[0]
        if top == "deepspeed":
            if self.is_real(fullname):
                return importlib.util.spec_from_file_location(
                    fullname, self.path(fullname), submodule_search_locations=None
                )
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        if top in sys.stdlib_module_names or top in ALLOWED or top == "dsmigrate":
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return a package of the release or a stub."""
        if spec.name == "torch":
            return torch_module()
        if self.is_package(spec.name):
            return PackageModule(spec.name, self)
        return StubModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do: stubs have no code."""

    def attribute(self, package: str, name: str) -> object:
        """Return what ``package.name`` is: a module, or what the package's ``__init__`` imports from a real module."""
        full = f"{package}.{name}"
        if self.is_real(full) or self.is_package(full):
            return importlib.import_module(full)
        for module in self.exporters(package, name):
            if self.is_real(module):
                return getattr(importlib.import_module(module), name)
        return getattr(StubModule(package), name)

    def exporters(self, package: str, name: str) -> list[str]:
        """Return the modules from which the package's ``__init__`` imports ``name``, by name or by ``*``."""
        init = self.root.joinpath(*package.split("."), "__init__.py")
        found = []
        for node in ast.walk(ast.parse(init.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and any(a.name in {name, "*"} for a in node.names):
                base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                found.append(".".join([*base, *([node.module] if node.module else [])]))
        return found


def install(root: Path) -> ReleaseFinder:
    """Put the finder first; code for pydantic 1 gets pydantic's own layer for version 1."""
    finder = ReleaseFinder(root)
    if needs_pydantic_1(root):
        import pydantic.v1 as layer  # noqa: PLC0415

        sys.modules["pydantic"] = layer
        for name in ("main", "fields", "utils", "types"):
            sys.modules[f"pydantic.{name}"] = importlib.import_module(f"pydantic.v1.{name}")
    sys.meta_path.insert(0, finder)
    return finder


def needs_pydantic_1(root: Path) -> bool:
    """Return whether the release's base model is written for pydantic 1 (up to 0.14) and imports it as pydantic."""
    text = (root / "deepspeed" / "runtime" / "config_utils.py").read_text(encoding="utf-8")
    return "ConfigDict" not in text
