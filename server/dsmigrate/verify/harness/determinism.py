"""The same random numbers, and the same order of additions, in both runs."""

from __future__ import annotations

import contextlib
import functools
import random
import sys
from typing import Any

from .place import rank


def seed_everything(torch: Any, seed: int) -> None:
    """Seed each rank apart, as processes without a seed are apart from each other, but alike in every run."""
    own = seed + rank()
    random.seed(own)
    torch.manual_seed(own)
    with contextlib.suppress(ImportError):
        import numpy as np  # noqa: PLC0415 - where the script may use it

        np.random.seed(own % (1 << 32))


class Seeds:
    """Seeds again when the process learns its rank, where it could not know it before.

    Processes that a script spawns have no rank in their environment, those of its conversion have one. Generators that
    the script has seeded itself by then are left alone.
    """

    def __init__(self, torch: Any, seed: int) -> None:
        self._torch = torch
        self._seed = seed
        self._own: set[str] = set()
        self._watch(torch, "manual_seed", "torch")
        self._watch(random, "seed", "random")
        with contextlib.suppress(ImportError):
            import numpy as np  # noqa: PLC0415 - as above

            self._watch(np.random, "seed", "numpy")

    def take(self, number: int) -> None:
        """Seed for the process of this rank."""
        own, before = set(self._own), self._seed + number
        if "torch" not in own:
            self._torch.manual_seed(before)
        if "random" not in own:
            random.seed(before)
        if "numpy" not in own and "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(before % (1 << 32))
        self._own = own

    def _watch(self, owner: Any, name: str, kind: str) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def seeded(*arguments: Any, **words: Any) -> Any:
            self._own.add(kind)
            return original(*arguments, **words)

        setattr(owner, name, seeded)


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
