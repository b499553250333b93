"""The environment that DeepSpeed reads ranks from, where no launcher has set it."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

OF_MANAGERS = {
    "RANK": ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK"),
    "WORLD_SIZE": ("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE"),
    "LOCAL_RANK": ("SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"),
}


def set_rank_environment(
    rank: int | None = None,
    world_size: int | None = None,
    local_rank: int | None = None,
    init_method: str | None = None,
) -> None:
    """Set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, before ``deepspeed.init_distributed``.

    What is given counts, as in ``init_process_group``: the numbers of a worker that ``mp.spawn`` started, for example,
    and ``tcp://host:port``. The rest is what the environment has, or what SLURM or MPI say. Without an address it is
    this machine's. RuntimeError if one of several processes does not know its number.
    """
    address = urlsplit(init_method or "")
    given = {
        "RANK": rank,
        "WORLD_SIZE": world_size,
        "LOCAL_RANK": local_rank,
        "MASTER_ADDR": address.hostname,
        "MASTER_PORT": address.port,
    }
    os.environ.update({name: str(value) for name, value in given.items() if value is not None})
    for name, others in OF_MANAGERS.items():
        found = [os.environ[other] for other in others if other in os.environ]
        if found:
            os.environ.setdefault(name, found[0])
    if os.environ.setdefault("WORLD_SIZE", "1") == "1":
        os.environ.setdefault("RANK", "0")
        os.environ.setdefault("LOCAL_RANK", "0")
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    missing = [name for name in OF_MANAGERS if name not in os.environ]
    if missing:
        raise RuntimeError(f"this is one of several processes, and its {' and '.join(missing)} is not known: give it")
