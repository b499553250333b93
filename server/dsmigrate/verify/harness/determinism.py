"""The same random numbers, and the same order of additions, in both runs."""

from __future__ import annotations

import contextlib
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
    """Choose deterministic kernels; where there is none torch warns once, and the tolerances have to do."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.utils.deterministic.fill_uninitialized_memory = False
    if cpu:
        torch.set_num_threads(1)


def fix_fresh_seeds(torch: Any, seed: int) -> None:
    """Make ``torch.seed()`` and ``random.seed()``, which ask the clock, give the same in every run."""
    own = seed + rank()

    def seeded() -> int:
        torch.manual_seed(own)
        return own

    torch.seed = torch.random.seed = seeded
