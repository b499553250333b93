"""What is fuzzed: each target writes mutated files and runs commands on them, as a person would, in this process."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from dsmigrate.cli.app import run
from dsmigrate.files.reading import MAX_BYTES
from tests.fuzz import protocol as protocols
from tests.fuzz.failing import FailedError
from tests.fuzz.mutation import mutated

ROOT = Path(__file__).parents[2]


SEEN: Counter[tuple[str, int]] = Counter()
"""How commands have ended: what fuzzes nothing but their usage shows here as twos."""


def seeds(*patterns: str, most: int = 200_000) -> list[str]:
    """Return the texts of files of this repository."""
    files = [file for pattern in patterns for file in sorted(ROOT.glob(pattern)) if file.stat().st_size < most]
    return [file.read_text(encoding="utf-8") for file in files]


CONFIGS = seeds("tests/schemas/good/*.json", "examples/**/*.json")
SCRIPTS = seeds("examples/**/*.py", "tests/e2e/situations/*.py", "tests/e2e/older_site/*.py")
SLURM = """#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
export CUDA_VISIBLE_DEVICES=0,1
torchrun --nproc_per_node=$GPUS train.py --lr 0.1 \\
  --epochs 3
"""
LAUNCHERS = [
    SLURM,
    "train:\n\tpython -m torch.distributed.launch --nproc_per_node 4 train.py\n",
    'FROM pytorch/pytorch\nCMD ["python", "-m", "torch.distributed.run", "train.py"]\n',
    "# Train\n\n```\ntorchrun --standalone --nproc_per_node=gpu train.py\n```\n",
    "jobs:\n  a:\n    steps:\n      - run: |\n          accelerate launch train.py\n",
]
ACCELERATE = """compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  zero_stage: 3
  offload_optimizer_device: cpu
  gradient_accumulation_steps: 4
  gradient_clipping: 1.0
  zero3_save_16bit_model: true
mixed_precision: bf16
num_machines: 1
num_processes: 8
"""
YAML = [
    ACCELERATE,
    ACCELERATE.replace("zero_stage: 3", "zero_stage: 2 # two"),
    "a: &x {b: 1}\nc: *x\n<<: *x\n? d\n: e\n",
]


def ran(arguments: list[str], folder: Path) -> tuple[int, str, str]:
    """Run a command in a folder; raises FailedError for an error of our own and for any other ending."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace")
    former, here = (sys.stdout, sys.stderr, sys.stdin), Path.cwd()
    sys.stdout, sys.stderr, sys.stdin = out, err, io.TextIOWrapper(io.BytesIO())
    try:
        os.chdir(folder)
        os.environ["DSMIGRATE_TRACEBACK"] = "1"
        code = run(arguments)
    finally:
        sys.stdout, sys.stderr, sys.stdin = former
        os.chdir(here)
    said, told = (stream.buffer.getvalue().decode("utf-8", "surrogateescape") for stream in (out, err))  # type: ignore[attr-defined]
    if code not in {0, 1, 2} or "internal error" in told or "Traceback" in told:
        raise FailedError(f"{' '.join(arguments)}: exit {code}\n{told[-3000:]}")
    SEEN[arguments[0] if arguments[0].isalpha() else "migrate", code] += 1
    return code, said, told


def _written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def config(chance: random.Random, folder: Path) -> None:
    """Check, mend, compare, explain and convert a mutated config."""
    _written(folder, "ds_config.json", mutated(chance, chance.choice(CONFIGS), CONFIGS))
    _written(folder, "other.json", chance.choice(CONFIGS))
    version = chance.choice([[], ["--deepspeed-version", chance.choice(("0.9.0", "0.12.6", "0.16.4", "0.19.8"))]])
    form = chance.choice(("text", "json", "sarif", "github"))
    _, said, _ = ran(["check", "--format", form, "--min-severity", "hint", *version, "ds_config.json"], folder)
    if form in {"json", "sarif"}:
        json.loads(said)
    match chance.randrange(6):
        case 0:
            ran(["check", "--unsafe-fixes", "--diff", "ds_config.json"], folder)
        case 1:
            ran(["memory", "--params", "7b", "--gpus", "8", "ds_config.json"], folder)
        case 2:
            to = chance.choice(("accelerate", "plugin", "dict", "transformers"))
            ran(["convert", "--to", to, "ds_config.json"], folder)
        case _:
            form = chance.choice(("text", "json", "markdown", "html", "junit", "github"))
            sides = chance.sample(["ds_config.json", "other.json"], 2)
            _, said, _ = ran(["diff", "--all", "--format", form, *sides], folder)
            if form == "json" and said:
                json.loads(said)


def merge(chance: random.Random, folder: Path) -> None:
    """Review the merge of mutated configs."""
    for name in ("base", "ours", "theirs"):
        _written(folder, f"{name}.json", mutated(chance, chance.choice(CONFIGS), CONFIGS))
    form = chance.choice(("text", "json", "markdown"))
    ran(["diff", "--base", "base.json", "--format", form, "ours.json", "theirs.json"], folder)


def yaml(chance: random.Random, folder: Path) -> None:
    """Check and convert mutated YAML."""
    _written(folder, "accelerate.yaml", mutated(chance, chance.choice(YAML), YAML))
    ran(["check", "accelerate.yaml"], folder)
    ran(["convert", "--to", chance.choice(("deepspeed", "plugin")), "accelerate.yaml"], folder)


def script(chance: random.Random, folder: Path) -> None:
    """Convert a mutated script, with options."""
    text = mutated(chance, chance.choice(SCRIPTS), SCRIPTS)
    tries = chance.choice((0, 8))
    while tries and not _is_python(text):  # few scripts whose syntax is broken are enough
        text = mutated(chance, chance.choice(SCRIPTS), SCRIPTS)
        tries -= 1
    size = chance.random()
    if size < 0.02:
        text = "\n".join([text, *(f"unused_{number} = {number}" for number in range(3000))])
    elif size < 0.023:
        text = "\n".join([text, "# " + "a comment " * 10] * 2) + "\n#" * (MAX_BYTES * 5 // 4 // 2)
    _written(folder, "train.py", text)
    _written(folder, "run.sh", chance.choice(LAUNCHERS))
    options = []
    for name, values in _OPTIONS.items():
        if chance.random() < 0.2:
            options += [name, *([chance.choice(values)] if values else [])]
    form = chance.choice(("text", "json"))
    code, said, told = ran(["train.py", "--format", form, *options], folder)
    if form == "json" and code != 2:
        json.loads(said)
    for internal in ("MG998", "MG999"):
        if internal in said or internal in told:
            raise FailedError(f"{internal} {' '.join(options)}\n{(said + told)[:3000]}")


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


_OPTIONS: dict[str, tuple[str, ...]] = {
    "--zero-stage": ("0", "1", "2", "3"),
    "--offload": ("none", "cpu"),
    "--optimizer": ("keep", "config"),
    "--precision": ("keep", "fp16", "bf16"),
    "--checkpoints": ("files", "engine"),
    "--target-version": ("0.9.0", "0.14.5", "0.19.8"),
    "--with-launchers": (),
    "--launcher": ("keep", "deepspeed"),
    "--no-follow": (),
}


def launch(chance: random.Random, folder: Path) -> None:
    """Convert a good script with mutated launch files beside it."""
    _written(folder, "train.py", chance.choice(SCRIPTS))
    for name in ("run.sh", "job.slurm", "Makefile", "Dockerfile", "README.md", "ci.yml"):
        if chance.random() < 0.5:
            _written(folder, name, mutated(chance, chance.choice(LAUNCHERS), LAUNCHERS))
    ran(["train.py", "--with-launchers"], folder)


def protocol(chance: random.Random, folder: Path) -> None:
    """Talk to the language server as no editor does."""
    SEEN["protocol", 0] += protocols.converse(chance, folder, [*CONFIGS, SCRIPTS[0]])


TARGETS: dict[str, Callable[[random.Random, Path], None]] = {
    "config": config,
    "merge": merge,
    "yaml": yaml,
    "script": script,
    "launch": launch,
    "protocol": protocol,
}


@contextlib.contextmanager
def emptied(folder: Path) -> Iterator[Path]:
    """Give a folder without files, and take away what lies in it afterwards."""
    yield folder
    for file in folder.iterdir():
        file.unlink()
