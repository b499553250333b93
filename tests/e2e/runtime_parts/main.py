"""Trains small models with what is in ``ds_compat.py``, and with plain DDP, and prints how far apart they are.

``python main.py TOPIC [TEXT]`` on any number of processes: a topic is a module of this folder, or a function of one
(``processes.save``), and only cases with the text in their name run. Rank 0 prints ``FOUND {case: {what: figure}}``.
A figure is a difference, of losses relative and of states absolute, or the text of an error. ``ds_compat.py`` is found
next to this file or on the path. Runs with every DeepSpeed release, and imports nothing else of the tests.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from typing import Any

import deepspeed
import torch.distributed as dist


def main() -> None:
    """Run the cases of the topic that is asked for."""
    deepspeed.init_distributed(dist_backend="gloo")
    deepspeed.get_accelerator().is_fp16_supported = lambda: True  # torch can on a CPU, which DeepSpeed does not know
    found: dict[str, Any] = {}
    topic, _, function = sys.argv[1].partition(".")
    for name, case in getattr(importlib.import_module(topic), function or "cases")():
        if len(sys.argv) > 2 and sys.argv[2] not in name:
            continue
        try:
            found[name] = case()
        except Exception:  # noqa: BLE001 - shown by the test
            found[name] = {"error": traceback.format_exc()}
    everybody: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, found)
    worst = {
        name: {what: max((one.get(name, {}).get(what, 0.0) for one in everybody), key=rank_of) for what in figures}
        for name, figures in found.items()
    }
    if dist.get_rank() == 0:
        print("FOUND", json.dumps(worst), flush=True)


def rank_of(figure: Any) -> tuple[bool, Any]:
    """By which the figures of the ranks are compared: texts are worse than numbers."""
    return isinstance(figure, str), figure


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # gloo now and then aborts on the way out
