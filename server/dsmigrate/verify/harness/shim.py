"""Makes a machine without CUDA look to a script as if it had one device per process; everything runs on the CPU.

Only the script's own code is told that there is CUDA. Libraries, PyTorch and DeepSpeed among them, get the true answer,
so that nothing below the script tries to reach a device.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from .job import Job
from .place import local_rank
from .shim_rest import pretend_rest
from .torch_hooks import around

_MEMORY = 80 * 2**30
_COUNTERS = (
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "memory_cached",
    "max_memory_cached",
    "utilization",
)
_NOTHING = (
    "set_device",
    "synchronize",
    "empty_cache",
    "reset_peak_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_accumulated_memory_stats",
    "ipc_collect",
    "init",
    "set_stream",
    "set_per_process_memory_fraction",
    "_sleep",
)
_FACTORIES = [
    "tensor",
    "as_tensor",
    "asarray",
    "empty",
    "empty_like",
    "empty_strided",
    "eye",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "range",
    "arange",
    "zeros",
    "zeros_like",
    "from_numpy",
    "scalar_tensor",
    "sparse_coo_tensor",
    "tril_indices",
    "triu_indices",
    "hann_window",
    "hamming_window",
    "normal",
]
_METHODS = ("new_tensor", "new_empty", "new_full", "new_ones", "new_zeros")


class Shim:
    """What the stand-ins share: the modules, and the device that the script has chosen."""

    def __init__(self, torch: Any, job: Job) -> None:
        self.torch = torch
        self.job = job
        self.device = local_rank()
        self.real_device = torch.device

    def asks(self, depth: int = 2) -> bool:
        """Return whether the caller's caller is code of the script."""
        frame = sys._getframe(depth)  # noqa: SLF001 - who asks is the question
        name = frame.f_code.co_filename
        return name.startswith(self.job.work) or frame.f_globals.get("__name__") == "__main__"

    def to_cpu(self, device: Any) -> Any:
        """Return the CPU for whatever means a CUDA device, everything else as it is."""
        if isinstance(device, bool):
            return device
        if isinstance(device, int):
            return self.real_device("cpu")
        if isinstance(device, str):
            return "cpu" if device.split(":")[0] == "cuda" else device
        if isinstance(device, self.real_device) and device.type == "cuda":
            return self.real_device("cpu")
        return device


def pretend(torch: Any, job: Job) -> None:
    """Put all stand-ins in place."""
    shim = Shim(torch, job)
    _devices(shim)
    _queries(shim)
    _streams(shim)
    _tensors(shim)
    _moves(shim)
    _modules(shim)
    _precision(shim)
    _randomness(shim)
    pretend_rest(torch, shim.to_cpu)


def _devices(shim: Shim) -> None:
    """``torch.device(0)``, which needs an accelerator, means the CPU; other devices stay what they are."""
    real = shim.real_device

    class Kind(type):
        def __instancecheck__(cls, item: object) -> bool:
            return isinstance(item, real)

        def __call__(cls, *arguments: Any, **words: Any) -> Any:
            if arguments and isinstance(arguments[0], int):
                return real("cuda", arguments[0])
            return real(*arguments, **words)

    stand_in = Kind("device", (), {"__module__": "torch", "__doc__": real.__doc__})
    shim.torch.device = stand_in


def _queries(shim: Shim) -> None:
    cuda = shim.torch.cuda
    around(cuda, "is_available", lambda original: lambda: True if shim.asks() else original())
    around(cuda, "device_count", lambda original: lambda: shim.job.processes if shim.asks() else original())
    for name in _NOTHING:
        setattr(cuda, name, lambda *_, **__: None)
    for name in _COUNTERS:
        setattr(cuda, name, lambda *_, **__: 0)

    def set_device(device: Any) -> None:
        if isinstance(device, shim.real_device):
            device = device.index or 0
        number = str(device).rpartition(":")[2]
        shim.device = int(number) if number.isdecimal() else 0

    properties = SimpleNamespace(
        name="CPU in the place of a GPU", major=8, minor=0, total_memory=_MEMORY, multi_processor_count=1
    )
    cuda.set_device = set_device
    cuda.current_device = lambda: shim.device
    cuda.get_device_name = lambda *_: properties.name
    cuda.get_device_capability = lambda *_: (properties.major, properties.minor)
    cuda.get_device_properties = lambda *_: properties
    cuda.mem_get_info = lambda *_: (_MEMORY, _MEMORY)
    cuda.memory_summary = lambda *_, **__: ""
    cuda.memory_stats = lambda *_: {}
    cuda.is_bf16_supported = lambda *_, **__: True
    cuda.is_initialized = lambda: False
    cuda.get_arch_list = list
    cuda.nvtx = SimpleNamespace(range_push=lambda *_: None, range_pop=lambda: None, mark=lambda *_: None, range=_region)
    _accelerator(shim)
    if shim.torch.distributed.is_available():
        nccl = lambda original: lambda: True if shim.asks() else original()  # noqa: E731
        for owner in (shim.torch.distributed, shim.torch.distributed.distributed_c10d):
            around(owner, "is_nccl_available", nccl)


def _accelerator(shim: Shim) -> None:
    """``torch.accelerator`` (torch 2.6 and later), which scripts use in the place of ``torch.cuda``."""
    accelerator = getattr(shim.torch, "accelerator", None)
    if accelerator is None:
        return
    cuda = shim.torch.cuda
    around(accelerator, "is_available", lambda original: lambda: True if shim.asks() else original())
    around(accelerator, "device_count", lambda original: lambda: shim.job.processes if shim.asks() else original())
    around(
        accelerator,
        "current_accelerator",
        lambda original: lambda *_, **words: shim.real_device("cuda") if shim.asks() else original(*_, **words),
    )
    for names, stand_in in (
        (("set_device_index", "set_device_idx"), cuda.set_device),
        (("current_device_index", "current_device_idx"), cuda.current_device),
        (("current_stream",), lambda *_: _Stream()),
        (("device_index",), _region),
        (("get_memory_info",), cuda.mem_get_info),
        (("get_device_capability",), lambda *_: {"supported_dtypes": set()}),
        (("memory_stats",), cuda.memory_stats),
        (("set_stream", *_NOTHING), lambda *_, **__: None),
        (_COUNTERS, lambda *_, **__: 0),
    ):
        for name in names:
            if hasattr(accelerator, name) and name != "set_device":
                setattr(accelerator, name, stand_in)


@contextlib.contextmanager
def _region(*_: Any, **__: Any) -> Iterator[None]:
    yield


class _Stream:
    """A stream, or an event, of a device on which everything is done at once."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._time = 0.0

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def record(self, *_: Any) -> None:
        self._time = time.perf_counter()

    def elapsed_time(self, end: _Stream) -> float:
        return (end._time - self._time) * 1e3

    def query(self) -> bool:
        return True

    def _done(self, *_: Any) -> None:
        return None

    synchronize = wait = wait_stream = wait_event = record_event = _done


def _streams(shim: Shim) -> None:
    cuda = shim.torch.cuda
    cuda.Stream = cuda.Event = cuda.ExternalStream = _Stream
    cuda.current_stream = cuda.default_stream = lambda *_: _Stream()
    cuda.stream = cuda.device = cuda.device_of = _region
    shim.torch.Tensor.record_stream = lambda *_: None
    shim.torch.Tensor.pin_memory = lambda self, *_: self


def _tensors(shim: Shim) -> None:
    torch = shim.torch

    def with_words(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **words: Any) -> Any:
            if words.get("device") is not None:
                words["device"] = shim.to_cpu(words["device"])
            words.pop("pin_memory", None)
            return original(*arguments, **words)

        return wrapped

    for name in _FACTORIES:
        if hasattr(torch, name):
            around(torch, name, with_words)
    for name in _METHODS:
        around(torch.Tensor, name, with_words)

    torch.nn.Module.to_empty = with_words(torch.nn.Module.to_empty)
    around(torch, "load", lambda original: _load(original, shim))


def _moves(shim: Shim) -> None:
    torch = shim.torch

    def to(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any, *arguments: Any, **words: Any) -> Any:
            if arguments:
                arguments = (shim.to_cpu(arguments[0]), *arguments[1:])
            if "device" in words:
                words["device"] = shim.to_cpu(words["device"])
            return _unshared(torch, original(self, *arguments, **words))

        return wrapped

    for owner in (torch.Tensor, torch.nn.Module):
        around(owner, "to", to)
        around(owner, "cuda", lambda _: lambda self, *_, **__: _unshared(torch, self))


def _unshared(torch: Any, moved: Any) -> Any:
    """Return what was moved to a device, out of the memory that processes share, as a device has its own.

    A model that a script hands to the processes that it spawns would else be one for all of them.
    """
    if isinstance(moved, torch.Tensor):
        return moved.clone() if moved.layout == torch.strided and moved.is_shared() else moved
    for tensor in (*moved.parameters(), *moved.buffers()):
        if tensor.is_shared():
            tensor.data = tensor.data.clone()
    return moved


def _load(original: Callable[..., Any], shim: Shim) -> Callable[..., Any]:
    def wrapped(f: Any, map_location: Any = None, *rest: Any, **words: Any) -> Any:
        if map_location is None:
            map_location = "cpu"
        elif isinstance(map_location, (str, shim.real_device)):
            map_location = shim.to_cpu(map_location)
        elif isinstance(map_location, dict) or callable(map_location):
            map_location = "cpu"
        return original(f, map_location, *rest, **words)

    return wrapped


def _modules(shim: Shim) -> None:
    """DDP and batch normalisation over ranks refuse device numbers and modules on the CPU."""
    torch = shim.torch

    def init(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any, module: Any, *arguments: Any, **words: Any) -> None:
            words.pop("device_ids", None)
            words.pop("output_device", None)
            original(self, module, None, None, *arguments[2:], **words)

        return wrapped

    around(torch.nn.parallel.DistributedDataParallel, "__init__", init)
    torch.nn.SyncBatchNorm.convert_sync_batchnorm = classmethod(lambda _cls, module, *_, **__: module)
    data_parallel = torch.nn.DataParallel
    around(
        data_parallel,
        "__init__",
        lambda original: lambda self, module, *_, **words: original(self, module, **{**words, "device_ids": []}),
    )


def _precision(shim: Shim) -> None:
    torch = shim.torch

    def region(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any, device_type: Any = "cuda", dtype: Any = None, *rest: Any, **words: Any) -> None:
            if device_type == "cuda":
                device_type, dtype = "cpu", dtype or torch.get_autocast_dtype("cuda")
            original(self, device_type, dtype, *rest, **words)

        return wrapped

    def scaler(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any, device: Any = "cuda", *rest: Any, **words: Any) -> None:
            original(self, "cpu" if device == "cuda" else device, *rest, **words)

        return wrapped

    around(torch.amp.autocast_mode.autocast, "__init__", region)
    around(torch.amp.GradScaler, "__init__", scaler)
    enabled = torch.is_autocast_enabled
    torch.is_autocast_enabled = lambda kind=None: enabled(
        "cpu" if kind == "cuda" or (kind is None and shim.asks()) else kind or "cuda"
    )


def _randomness(shim: Shim) -> None:
    torch, cuda = shim.torch, shim.torch.cuda
    cuda.get_rng_state = lambda *_, **__: torch.get_rng_state()
    cuda.get_rng_state_all = lambda: [torch.get_rng_state()]
    cuda.set_rng_state = cuda.set_rng_state_all = lambda *_, **__: None
    cuda.manual_seed = cuda.manual_seed_all = lambda *_: None
    cuda.seed = cuda.seed_all = lambda: None
    real = torch.Generator

    class Kind(type):
        def __instancecheck__(cls, item: object) -> bool:
            return isinstance(item, real)

        def __call__(cls, device: Any = "cpu") -> Any:
            return real(shim.to_cpu(device))

    torch.Generator = Kind("Generator", (), {"__module__": "torch"})
