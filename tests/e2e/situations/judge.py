"""Runs the script of a situation with a config, and says whether it comes through.

Reads JSON lines ``{"situation": …, "config": …, "ranks": …}`` and answers each with ``{"error": …}``: "" or what the
first process to fail said. Each one runs in processes of its own, forked from this one, which has imported DeepSpeed
and has started no thread and no process group. Compiled kernels are replaced by ones that do nothing; where a script
needs more of one, it says so.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from tests.e2e.rule_judge import Kernel, told
from tests.e2e.situations.working import SITUATIONS

SECONDS = 120
"""After which a process that hangs is ended, on any machine; none does where the first that fails says so."""
IMPORTED_LATER = (
    "deepspeed.comm.mori",
    "deepspeed.inference.quantization.layers",
    "deepspeed.module_inject.auto_ep",
    "deepspeed.module_inject.auto_ep_layer",
    "deepspeed.ops.op_builder.all_ops",
    "deepspeed.runtime.zero.muon.muon_optimizer",
    "deepspeed.runtime.zero.stage3",
    "deepspeed.runtime.zero.stage_1_and_2",
)
"""What DeepSpeed imports where it first needs it, in a second or two."""


def main() -> None:
    """Judge what standard input asks for."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # DeepSpeed's own talk
    if "--errors" not in sys.argv:
        os.dup2(1, 2)
    scripts = prepare()
    for line in sys.stdin:
        asked = json.loads(line)
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            error = run(scripts[asked["situation"]], asked["config"], asked["ranks"], Path(folder))
        answers.write(json.dumps({"error": error}) + "\n")
        answers.flush()


def prepare() -> dict[str, ModuleType]:
    """Return the scripts by name, after importing DeepSpeed and replacing what needs a compiler or a GPU."""
    os.environ.update(HOME=str(Path.cwd()), TORCHDYNAMO_DISABLE="1")
    import cpuinfo  # noqa: PLC0415 - after DeepSpeed's talk was sent elsewhere

    cpuinfo.get_cpu_info = lambda: {"vendor_id_raw": "any"}  # asks for a second, each time
    import deepspeed  # noqa: PLC0415
    import torch  # noqa: PLC0415
    from deepspeed.ops.op_builder.builder import OpBuilder  # noqa: PLC0415
    from deepspeed.ops.op_builder.cpu import NotImplementedBuilder  # noqa: PLC0415

    torch.set_num_threads(1)
    for builder in (OpBuilder, NotImplementedBuilder):
        builder.load = lambda *_, **__: Kernel(1)
    type(deepspeed.accelerator.get_accelerator()).is_fp16_supported = lambda *_: True
    for module in IMPORTED_LATER:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    scripts = {
        name: importlib.import_module(f"tests.e2e.situations.{situation.script or name}")
        for name, situation in SITUATIONS.items()
    }
    gc.freeze()
    gc.disable()
    gc.collect = lambda *_: 0  # DeepSpeed collects garbage for every engine
    return scripts


def run(script: ModuleType, config: dict[str, Any], ranks: int, folder: Path) -> str:
    """Return what went wrong first in ``ranks`` processes that run a script; "" when nothing did."""
    reading, writing = os.pipe()
    children = []
    for rank in range(ranks):
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException), os.fdopen(writing, "w") as report:
                alone(script, config, (rank, ranks), folder, report)
            os._exit(0)
        children.append(child)
    os.close(writing)
    well, error = 0, ""
    with os.fdopen(reading) as reports:
        for line in reports:
            error = json.loads(line)
            if error:
                break  # the others may wait for this one
            well += 1
    for child in children:
        if error:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return error or ("" if well == ranks else "a process hung or ended")


def alone(script: ModuleType, config: dict[str, Any], place: Sequence[int], folder: Path, report: TextIO) -> None:
    """Run a script as one process of a gloo group, and report what it raised as one line."""
    import torch.distributed  # noqa: PLC0415
    from deepspeed import comm  # noqa: PLC0415

    signal.alarm(SECONDS)
    rank, ranks = place
    os.chdir(folder)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks))
    try:
        torch.distributed.init_process_group(
            "gloo",
            init_method=f"file://{folder / 'store'}",
            rank=rank,
            world_size=ranks,
            timeout=timedelta(seconds=SECONDS),
        )
        comm.init_distributed("gloo")
        script.run(config)
        error = ""
    except SystemExit as ending:
        error = told(ending) if ending.code else ""  # what measures one step ends on purpose
    except BaseException as problem:  # noqa: BLE001 - the answer is whatever DeepSpeed says
        error = told(problem)
        traceback.print_exc()
    report.write(json.dumps(error) + "\n")


if __name__ == "__main__":
    main()
