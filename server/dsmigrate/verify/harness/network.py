"""Process groups at a port that is free, whatever the script has written down."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from .job import Job
from .torch_hooks import around

_TCP = re.compile(r"(tcp://[^:/?]+):\d+")


def hook_network(torch: Any, job: Job, joined: Callable[[int], None] | None = None) -> None:
    """Let the process group meet at the free port, and over gloo where there is no CUDA.

    A port that the launcher has chosen stays: its own store waits there. ``joined`` is called with the rank.
    """
    dist = torch.distributed
    if not dist.is_available():
        return
    given = os.environ.get("MASTER_PORT")

    def init(original: Any) -> Any:
        def wrapped(backend: Any = None, init_method: Any = None, *rest: Any, **words: Any) -> Any:
            if isinstance(init_method, str):
                init_method = _TCP.sub(rf"\1:{job.port}", init_method)
            if os.environ.get("MASTER_PORT") != given and "MASTER_PORT" in os.environ:
                os.environ["MASTER_PORT"] = given or str(job.port)
            if job.cpu:
                backend = over_gloo(backend)
                words.pop("device_id", None)
            found = original(backend, init_method, *rest, **words)
            if joined is not None:
                joined(dist.get_rank())
            return found

        return wrapped

    def new_group(original: Any) -> Any:
        def wrapped(*arguments: Any, **words: Any) -> Any:
            if job.cpu and "backend" in words:
                words["backend"] = over_gloo(words["backend"])
            return original(*arguments, **words)

        return wrapped

    for owner in (dist, dist.distributed_c10d):
        around(owner, "init_process_group", init)
        around(owner, "new_group", new_group)


def over_gloo(backend: Any) -> Any:
    """Return the backend with gloo in the place of nccl."""
    return "gloo" if isinstance(backend, str) and "nccl" in backend.lower() else backend
