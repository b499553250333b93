"""How long ``dsmigrate diff`` takes from start to result, as a multiple of ``python -c "import deepdiff"``.

    python -m tests.benchmarks.diff_speed [OLD NEW] [--repeat N]

All are run in turn, so that a busy machine slows them alike: the two configs by default, a change of stage, buckets and
rate. Wall and CPU time, medians. ``deep diff``, the command of deepdiff, ``jdiff``, that of jsondiff, and ``graphtage``
compare the same files where they are installed beside the running Python (``pip install deepdiff[cli] jsondiff
graphtage``; no registry of Python packages has dyff). All run from byte code, as installed packages do.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SERVER = Path(__file__).parents[2] / "server"
FLOOR = "import deepdiff"
OURS = "dsmigrate diff"
OTHERS = {"deep diff": ["deep", "diff"], "jdiff": ["jdiff"], "graphtage": ["graphtage", "--no-status"]}
"""Commands of others that compare two JSON files."""
OLD = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 2,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": [0.9, 0.95], "weight_decay": 0.1}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-4, "warmup_num_steps": 100}},
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 5e8},
    "gradient_clipping": 1.0,
}
NEW = {
    **OLD,
    "gradient_accumulation_steps": 4,
    "zero_optimization": {"stage": 3, "reduce_bucket_size": 2e8, "offload_optimizer": {"device": "cpu"}},
    "steps_per_print": 50,
}


def cost(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Return seconds of wall time and of CPU time of one run; raises RuntimeError when it could not do its work."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in {0, 1}:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.decode()[-500:]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(old: str, new: str) -> dict[str, list[str]]:
    """Return what is measured, by name."""
    beside = Path(sys.executable).parent
    found = {
        "python -c pass": [sys.executable, "-c", "pass"],
        FLOOR: [sys.executable, "-c", "import deepdiff"],
        OURS: [sys.executable, "-m", "dsmigrate", "diff", old, new],
    }
    for name, command in OTHERS.items():
        if (beside / command[0]).exists():
            found[name] = [str(beside / command[0]), *command[1:], old, new]
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="OLD NEW")
    parser.add_argument("--repeat", type=int, default=20)
    args = parser.parse_args(arguments)
    if len(args.files) not in {0, 2}:
        parser.error("give two files, or none")
    environment = {**os.environ, "PYTHONPATH": str(SERVER), "NO_COLOR": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        environment["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")  # for all alike, as when installed
        files = args.files or [str(Path(folder) / name) for name in ("old.json", "new.json")]
        if not args.files:
            for name, config in zip(files, (OLD, NEW), strict=True):
                Path(name).write_text(json.dumps(config, indent=2), encoding="utf-8")
        every = commands(*files)
        costs: dict[str, list[tuple[float, float]]] = {name: [] for name in every}
        for command in every.values():
            cost(command, environment)  # files and byte code into the caches
        for _ in range(args.repeat):
            for name, command in every.items():
                costs[name].append(cost(command, environment))
    floor = [statistics.median(one) for one in zip(*costs[FLOOR], strict=True)]
    print(f"{'':16}{'wall':>12}{'CPU':>12}   multiple of {FLOOR!r}: wall, CPU")
    for name, measured in costs.items():
        wall, cpu = (statistics.median(one) for one in zip(*measured, strict=True))
        print(f"{name:16}{1000 * wall:9.1f} ms{1000 * cpu:9.1f} ms   {wall / floor[0]:5.2f} x {cpu / floor[1]:5.2f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
