"""Lets DeepSpeed up to 0.14.0 train on a CPU with gloo.

``site/sitecustomize.py`` imports it where its folder is on ``PYTHONPATH``. What these releases do on a CPU only with
Intel's collectives is replaced by what they do elsewhere:

- the accelerator names ``gloo`` as its backend, as 0.14.3 does where Intel's collectives are missing;
- collectives get detached tensors of the same memory: gloo writes results through autograd, NCCL and Intel's do not;
- where a CPU has no streams and events there are some that do nothing;
- buckets are small, unless the config says otherwise: before 0.10 each step divides the whole of one;
- gradients of type ``torch.FloatTensor`` are put into the bucket that ``torch.cuda.FloatTensor`` would be put into.

None of it computes anything.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

COLLECTIVES = (
    "all_gather", "all_gather_base", "all_gather_coalesced", "all_gather_into_tensor", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "reduce_scatter_base", "reduce_scatter_tensor", "scatter",
)  # fmt: skip


class NoStream:
    """A stream, or a mark in one, that does nothing."""

    def __init__(self, *_: object, **__: object) -> None:
        self.record = self.wait = self.synchronize = self.record_event = lambda *_: None
        self.wait_stream = self.wait_event = self.record
        self.query = lambda: True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def speak_gloo(module: Any) -> None:
    """Change ``deepspeed.accelerator.cpu_accelerator``."""
    accelerator = module.CPU_Accelerator
    accelerator.communication_backend_name = lambda _: "gloo"
    if accelerator.Event.fget(None) is None:
        for name in ("Event", "Stream", "stream", "current_stream", "default_stream"):
            setattr(accelerator, name, lambda *_, **__: NoStream())
        accelerator.device_count = lambda _: 1  # which asks numactl
        accelerator.memory_stats = lambda *_: {"num_alloc_retries": 0}
        module.torch.Tensor.record_stream = lambda *_: None


def without_autograd(module: Any) -> None:
    """Change ``deepspeed.comm.torch``."""
    backend = module.TorchBackend
    for name in COLLECTIVES:
        if hasattr(backend, name):
            setattr(backend, name, detaching(getattr(backend, name)))


def detaching(collective: Callable[..., Any]) -> Callable[..., Any]:
    """The same method of a backend, given detached tensors."""

    @functools.wraps(collective)
    def called(self: Any, *arguments: Any, **named: Any) -> Any:
        return collective(self, *map(detached, arguments), **{name: detached(value) for name, value in named.items()})

    return called


def detached(value: Any) -> Any:
    """A tensor or a list of tensors without what autograd knows of it, in the same memory; all else as it is."""
    if isinstance(value, list):
        return [detached(one) for one in value]
    return value.detach() if hasattr(value, "detach") else value


def by_type(tensors: list[Any]) -> list[tuple[str, list[Any]]]:
    """Dense gradients by the name of their type, in DeepSpeed's order."""
    names = [f"torch.{name}" for name in ("HalfTensor", "FloatTensor", "DoubleTensor", "BFloat16Tensor")]
    buckets = [(name, [tensor for tensor in tensors if tensor.type() == name]) for name in names]
    return [(name, bucket) for name, bucket in buckets if bucket]


def know_cpu_gradients(module: Any) -> None:
    """Change ``deepspeed.runtime.engine``: what it reduces at ZeRO 0, before 0.13."""
    from deepspeed.git_version_info import version  # noqa: PLC0415 - whichever deepspeed is being imported

    if tuple(map(int, version.split(".")[:2])) < (0, 13):
        module.split_half_float_double_sparse = by_type


def know_cpu_gradients_at_zero_1(module: Any) -> None:
    """Change ``deepspeed.runtime.zero.stage_1_and_2``, which leaves out what has another type."""
    module.split_half_float_double = lambda tensors: [bucket for _, bucket in by_type(tensors)]


def with_small_buckets(module: Any) -> None:
    """Change ``deepspeed.runtime.zero.config``: before 0.10 each step divides a bucket of 2 GB."""
    module.DeepSpeedZeroConfig.__fields__["reduce_bucket_size"].default = 500_000


CHANGES: dict[str, Callable[[Any], None]] = {
    "deepspeed.accelerator.cpu_accelerator": speak_gloo,
    "deepspeed.comm.torch": without_autograd,
    "deepspeed.runtime.engine": know_cpu_gradients,
    "deepspeed.runtime.zero.config": with_small_buckets,
    "deepspeed.runtime.zero.stage_1_and_2": know_cpu_gradients_at_zero_1,
}


class ChangingLoader(Loader):
    """Loads a module as usual and then changes it."""

    def __init__(self, loader: Loader, change: Callable[[Any], None]) -> None:
        self._loader = loader
        self._change = change

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._change(module)


class ChangingFinder(MetaPathFinder):
    """Finds the modules of ``CHANGES``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        change = CHANGES.get(fullname)
        spec = PathFinder.find_spec(fullname, path, target) if change is not None else None
        if spec is None or spec.loader is None or change is None:
            return None
        spec.loader = ChangingLoader(spec.loader, change)
        return spec


sys.meta_path.insert(0, ChangingFinder())
