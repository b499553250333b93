"""Stand-ins for the rarer parts of ``torch.cuda``: typed tensors, its submodules, and defaults for new tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

_KINDS = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ShortTensor": "int16",
    "CharTensor": "int8",
    "ByteTensor": "uint8",
    "BoolTensor": "bool",
}
_MEMORY = (
    "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_stats",
    "memory_summary", "mem_get_info", "empty_cache", "reset_peak_memory_stats", "set_per_process_memory_fraction",
)  # fmt: skip
_RANDOM = (
    "get_rng_state", "get_rng_state_all", "set_rng_state", "set_rng_state_all", "manual_seed", "manual_seed_all",
    "seed", "seed_all",
)  # fmt: skip


def pretend_rest(torch: Any, to_cpu: Callable[[Any], Any]) -> None:
    """Put these stand-ins in place, after those of ``torch.cuda`` itself; ``to_cpu`` maps a device to the CPU."""
    _typed_tensors(torch)
    _submodules(torch)
    _defaults(torch, to_cpu)


def _typed_tensors(torch: Any) -> None:
    """``torch.cuda.FloatTensor`` and its kind, called, asked with ``isinstance``, or named in ``Tensor.type``."""
    names: dict[Any, str] = {}
    for name, kind in _KINDS.items():
        stand_in = _typed(torch, name, getattr(torch, kind))
        setattr(torch.cuda, name, stand_in)
        names[stand_in] = names[f"torch.cuda.{name}"] = f"torch.{name}"
    original = torch.Tensor.type

    def type_of(self: Any, dtype: Any = None, *arguments: Any, **words: Any) -> Any:
        if isinstance(dtype, (str, type)):
            dtype = names.get(dtype, dtype)
        return original(self, dtype, *arguments, **words)

    torch.Tensor.type = type_of
    set_type = torch.set_default_tensor_type
    torch.set_default_tensor_type = lambda kind: set_type(names.get(kind, kind))


def _typed(torch: Any, name: str, dtype: Any) -> Any:
    class Typed(type):
        def __instancecheck__(cls, item: object) -> bool:
            return isinstance(item, torch.Tensor) and item.dtype is dtype

        def __call__(cls, *arguments: Any, **_: Any) -> Any:
            if len(arguments) == 1 and not isinstance(arguments[0], int):
                return torch.tensor(arguments[0], dtype=dtype)
            return torch.empty(*arguments, dtype=dtype)

    return Typed(name, (), {"__module__": "torch.cuda", "dtype": dtype, "is_cuda": True})


def _submodules(torch: Any) -> None:
    """What stands in ``torch.cuda`` stands in ``torch.cuda.memory`` and ``torch.cuda.random`` as well."""
    cuda = torch.cuda
    for module, names in ((cuda.memory, _MEMORY), (cuda.random, _RANDOM)):
        for name in names:
            setattr(module, name, getattr(cuda, name))
    for name in ("_record_memory_history", "_dump_snapshot"):
        setattr(cuda.memory, name, lambda *_, **__: None)
    cuda.nccl = SimpleNamespace(version=lambda: (2, 20, 5), is_available=lambda _tensors: False)
    cuda.profiler = SimpleNamespace(start=lambda: None, stop=lambda: None, profile=_nothing)
    cuda.cudart = lambda: SimpleNamespace(cudaProfilerStart=lambda: 0, cudaProfilerStop=lambda: 0)
    cuda.default_generators = (torch.default_generator,)
    cuda.is_current_stream_capturing = lambda: False
    cuda.can_device_access_peer = lambda *_: True


@contextlib.contextmanager
def _nothing(*_: Any, **__: Any) -> Iterator[None]:
    yield


def _defaults(torch: Any, to_cpu: Callable[[Any], Any]) -> None:
    """``torch.set_default_device("cuda")`` would let every new tensor reach for a device."""
    if hasattr(torch, "set_default_device"):
        original = torch.set_default_device
        torch.set_default_device = lambda device: original(None if device is None else to_cpu(device))
