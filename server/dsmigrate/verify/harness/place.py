"""Which of the processes this is, before there is a process group: torchrun's environment, or srun's."""

from __future__ import annotations

import os


def rank() -> int:
    """Return the number of this process among all."""
    return int(os.environ.get("RANK") or os.environ.get("SLURM_PROCID") or 0)


def local_rank() -> int:
    """Return the number of this process on its machine."""
    return int(os.environ.get("LOCAL_RANK") or os.environ.get("SLURM_LOCALID") or 0)


def knows_its_rank() -> bool:
    """Return whether the launcher has told it."""
    return bool(os.environ.get("RANK") or os.environ.get("SLURM_PROCID"))
