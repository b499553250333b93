"""The environment that DeepSpeed reads ranks from, where no launcher has set it."""

from __future__ import annotations

import os
from urllib.parse import urlsplit


def set_rank_environment(
    rank: int | None = None,
    world_size: int | None = None,
    local_rank: int | None = None,
    init_method: str | None = None,
) -> None:
    """Set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT for ``deepspeed.init_distributed``, before it.

    What is given counts, as it did in ``init_process_group``: ranks of all processes, of a worker of ``mp.spawn`` for
    one, and ``tcp://host:port``. What is not given comes from the environment: its own variable, else SLURM's or MPI's.
    Without an address that of this machine is taken, which serves a single node.
    """
    address = urlsplit(init_method if init_method is not None else "env://")
    values = {
        "RANK": (rank, "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", 0),
        "WORLD_SIZE": (world_size, "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE", 1),
        "LOCAL_RANK": (
            local_rank, "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", 0
        ),
        "MASTER_ADDR": (address.hostname, "127.0.0.1"),
        "MASTER_PORT": (address.port, 29500),
    }  # fmt: skip
    for name, (given, *elsewhere, default) in values.items():
        found = (os.environ[place] for place in (name, *map(str, elsewhere)) if place in os.environ)
        os.environ[name] = str(given) if given is not None else next(found, str(default))
