"""Reads configs as JSON lines and says what DeepSpeedConfig makes of each: the error, or a digest of its whole state.

Runs in a child process that has torch and deepspeed; there is no process group, the world is one process. With
``--state`` the state itself is printed instead of its digest. With ``--cuda`` the one check of the config that asks for
CUDA, that of ``aio.use_gds``, is told that it is there.
"""

from __future__ import annotations

import enum
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from types import SimpleNamespace

SKIPPED = frozenset({"_param_dict", "mpu", "mesh_device"})


def main() -> None:
    """Judge the configs on standard input, one answer a line: ``{"error": …}`` or ``{"state": …}``."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # DeepSpeed's own talk
    from deepspeed import comm  # noqa: PLC0415 - after its talk was sent elsewhere
    from deepspeed.runtime.config import DeepSpeedConfig  # noqa: PLC0415 - after its talk was sent elsewhere
    from deepspeed.runtime.swap_tensor import aio_config  # noqa: PLC0415 - after its talk was sent elsewhere

    comm.get_rank = lambda group=None: 0  # noqa: ARG005 - as in a process group of one
    comm.get_world_size = lambda group=None: 1  # noqa: ARG005 - as in a process group of one
    if "--cuda" in sys.argv:
        aio_config.get_accelerator = lambda: SimpleNamespace(device_name=lambda: "cuda")
    whole = "--state" in sys.argv
    for line in sys.stdin:
        try:
            state = json.dumps(plain(DeepSpeedConfig(json.loads(line)).__dict__), sort_keys=True)
            answer = {"state": state if whole else hashlib.sha256(state.encode()).hexdigest()}
        except Exception as error:  # noqa: BLE001 - the answer is whatever DeepSpeed says
            answer = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    os._exit(0)


def plain(value: object) -> object:
    """Return a value as JSON data: models and objects by their fields, anything else by its text."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items() if key not in SKIPPED}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inner) for inner in value]
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    if hasattr(value, "__dict__") and not callable(value):
        return plain(vars(value))
    return str(value).split(" at 0x")[0]


if __name__ == "__main__":
    main()
