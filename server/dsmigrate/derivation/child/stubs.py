"""Stand-ins for everything that DeepSpeed's config code imports and that is not installed: torch above all."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any


class StubBase:
    """What a class inherits whose base is a stub."""

    def __init__(self, *arguments: object, **options: object) -> None:
        """Take anything."""


class Stub:
    """Answers every use with another stub; a decorator that is a stub returns what it decorates."""

    def __init__(self, name: str = "stub") -> None:
        self.stands_for = name

    def __getattr__(self, name: str) -> Stub:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Stub(f"{self.stands_for}.{name}")

    def __call__(self, *arguments: object, **options: object) -> object:
        """Return what is decorated, or a stub."""
        decorated = len(arguments) == 1 and not options
        if decorated and isinstance(arguments[0], types.FunctionType | type):
            return arguments[0]
        return Stub(f"{self.stands_for}()")

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (StubBase,)

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, key: object) -> Stub:
        return Stub(f"{self.stands_for}[]")

    def __contains__(self, item: object) -> bool:
        return False

    def __or__(self, other: object) -> Stub:
        return self

    __ror__ = __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __truediv__ = __or__

    def __lt__(self, other: object) -> bool:
        return False

    __le__ = __gt__ = __ge__ = __lt__

    def __repr__(self) -> str:
        return f"<{self.stands_for}>"


class StubModule(types.ModuleType):
    """A module that has every attribute, and none for ``import *``."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []
        self.__all__: list[str] = []
        self.stands_for = name

    def __getattr__(self, name: str) -> Stub:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        value = Stub(f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class Dtype:
    """``torch.dtype``: a real class, because annotations and ``isinstance`` name it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


DTYPES = ("float16", "float32", "float64", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "bool")
DTYPE_ALIASES = {"half": "float16", "float": "float32", "double": "float64", "int": "int32", "long": "int64"}


def torch_module() -> StubModule:
    """Return a module like torch 2: real dtypes, a real class where annotations need one, stubs elsewhere."""
    torch = StubModule("torch")
    names: dict[str, Any] = {name: Dtype(name) for name in DTYPES}
    names |= {alias: names[name] for alias, name in DTYPE_ALIASES.items()}
    names |= {name: type(name, (StubBase,), {}) for name in ("Tensor", "device", "Generator")}
    torch.__dict__.update(names, dtype=Dtype, __version__="2.6.0")
    return torch
