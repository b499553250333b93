"""The same random numbers, and the same order of additions, in both runs."""

from __future__ import annotations

import contextlib
import functools
import random
from typing import Any

from .place import rank


def seed_everything(torch: Any, seed: int, number: int | None = None) -> None:
    """Seed each rank apart, as processes without a seed are apart from each other, but alike in every run.

    ``number`` is the rank where the environment does not tell it.
    """
    own = seed + (rank() if number is None else number)
    random.seed(own)
    torch.manual_seed(own)
    with contextlib.suppress(ImportError):
        import numpy as np  # noqa: PLC0415 - where the script may use it

        np.random.seed(own % (1 << 32))


def settle(torch: Any, *, cpu: bool) -> None:
    """Choose deterministic kernels; where there is none torch warns once, and the tolerances have to do.

    What the script asks for otherwise is not done: ``cudnn.benchmark`` takes the kernel that happens to be faster in
    this run, and TF32 turns a difference in the last bit of a weight into one in the tenth.
    """
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    for name, value in (("deterministic", True), ("benchmark", False), ("allow_tf32", False)):
        setattr(torch.backends.cudnn, name, value)
        setattr(type(torch.backends.cudnn), name, Held(value))
    for name in ("_set_cublas_allow_tf32", "_set_float32_matmul_precision"):  # off unless a script asks for it
        setattr(torch._C, name, _passed_over)  # noqa: SLF001
    if cpu:
        torch.set_num_threads(1)
        exact_norms(torch)


class Held:
    """A setting of torch that the script may write and read back, while torch keeps what it has."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __get__(self, _instance: object, _owner: type | None = None) -> object:
        return self.value

    def __set__(self, _instance: object, value: object) -> None:
        self.value = value


def _passed_over(_value: object) -> None:
    pass


def exact_norms(torch: Any) -> None:
    """Let norms of 32-bit tensors on the CPU be as exact as they are on a GPU.

    A GPU adds up in a tree, a CPU one number after the other: the norm of ten million numbers is off by 3e-4 there. A
    script that clips by ``clip_grad_norm_`` would part from DeepSpeed, which takes its norms in 64 bits.
    """

    def single(original: Any) -> Any:
        @functools.wraps(original)
        def wrapped(x: Any, *arguments: Any, **words: Any) -> Any:
            if not _adds_up_in_32_bits(torch, [x], words):
                return original(x, *arguments, **words)
            return original(x, *arguments, **{**words, "dtype": torch.float64}).to(torch.float32)

        return wrapped

    def many(original: Any) -> Any:
        @functools.wraps(original)
        def wrapped(tensors: Any, *arguments: Any, **words: Any) -> Any:
            tensors = list(tensors)
            if not _adds_up_in_32_bits(torch, tensors, words):
                return original(tensors, *arguments, **words)
            found = original(tensors, *arguments, **{**words, "dtype": torch.float64})
            return [one.to(torch.float32) for one in found]

        return wrapped

    torch.linalg.vector_norm = single(torch.linalg.vector_norm)
    if hasattr(torch, "_foreach_norm"):  # what clip_grad_norm_ calls in releases that have it for the CPU
        torch._foreach_norm = many(torch._foreach_norm)  # noqa: SLF001


def _adds_up_in_32_bits(torch: Any, tensors: list[Any], words: dict[str, Any]) -> bool:
    """Whether a norm of these is taken in 32 bits on the CPU, with nothing else asked for or differentiated."""
    if any(words.get(name) is not None for name in ("dtype", "out")):
        return False
    return all(
        isinstance(one, torch.Tensor)
        and one.dtype is torch.float32
        and one.device.type == "cpu"
        and not (one.requires_grad and torch.is_grad_enabled())
        for one in tensors
    )


def fix_fresh_seeds(torch: Any, seed: int) -> None:
    """Make ``torch.seed()`` and ``random.seed()``, which ask the clock, give the same in every run."""
    own = seed + rank()

    def seeded() -> int:
        torch.manual_seed(own)
        return own

    torch.seed = torch.random.seed = seeded
