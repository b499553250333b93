"""How fast ``dsmigrate check`` is, beside ``check-jsonschema`` with our own schema.

    python -m tests.benchmarks.check_speed FOLDER [--repeat N] [--generated N]

For a folder of real configs: both commands as a whole over the same files, run in turn, with wall time and CPU time of
the process; and in this process, reading and checking a file beside ``json.loads`` and jsonschema's own validator with
the same schema. Then the time per 100 lines, of the folder and of generated configs, most of which have faults (for
each finding a fix is worked out and proven). The least time of several runs counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import jsonschema

from dsmigrate.checking.evidence import consumer_for
from dsmigrate.document import parse
from dsmigrate.knowledge import Consumer
from dsmigrate.rules import Settings, check, every_rule
from dsmigrate.schemas_location import schema_file
from tests.rules.agreement.generate import cases

SERVER = Path(__file__).parents[2] / "server"
SCHEMA = schema_file("deepspeed/deepspeed-config.schema.json")
SUFFIXES = frozenset({".json", ".conf", ".hjson"})


@dataclass(frozen=True, slots=True)
class Config:
    """A config text, the number of its lines, and who reads it."""

    text: str
    lines: int
    consumer: Consumer


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command took: seconds of wall time and of CPU time."""

    wall: float
    cpu: float


def config(text: str, consumer: Consumer | None = None) -> Config:
    """Return a config; without a consumer, the one that its text shows."""
    return Config(text, text.count("\n") + 1, consumer or Consumer(consumer_for(parse(text), None).value))


def command_cost(command: Sequence[str]) -> Cost:
    """Run a command, whatever it finds; raises RuntimeError when it could not do its work."""
    environment = {**os.environ, "PYTHONPATH": str(SERVER), "NO_COLOR": "1"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in {0, 1} or "Traceback" in done.stderr:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-500:]}")
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def commands(files: Sequence[Path], repeat: int) -> None:
    """Print what the two commands take for the same files."""
    peer = Path(sys.executable).with_name("check-jsonschema")
    names = [str(file) for file in files]
    asked = {"dsmigrate check": [sys.executable, "-m", "dsmigrate", "check", *names]}
    if peer.exists():
        schema = ["--schemafile", str(SCHEMA), "--default-filetype", "json"]
        asked["check-jsonschema"] = [str(peer), *schema, *names]
    else:
        print("check-jsonschema is not installed beside this Python: pip install check-jsonschema")
    costs: dict[str, list[Cost]] = {name: [] for name in asked}
    for _ in range(repeat):
        for name, command in asked.items():
            costs[name].append(command_cost(command))
    print(f"whole commands, {len(files)} files")
    for name, found in costs.items():
        wall, cpu = min(cost.wall for cost in found), min(cost.cpu for cost in found)
        print(f"  {name:18}{len(files) / wall:8.0f} files/s   {1000 * wall:7.0f} ms wall   {1000 * cpu:7.0f} ms CPU")
    if len(costs) > 1:
        (our_wall, our_cpu), (wall, cpu) = (
            (min(cost.wall for cost in found), min(cost.cpu for cost in found)) for found in costs.values()
        )
        print(f"  check-jsonschema / dsmigrate: {wall / our_wall:.2f} in wall time, {cpu / our_cpu:.2f} in CPU time")


def least(work: Callable[[Config], object], configs: Sequence[Config], repeat: int) -> list[float]:
    """Return the least seconds of ``work`` for each config."""
    best = [float("inf")] * len(configs)
    for _ in range(repeat):
        for index, one in enumerate(configs):
            start = time.perf_counter()
            work(one)
            best[index] = min(best[index], time.perf_counter() - start)
    return best


def ours(one: Config) -> object:
    """Read and check a config with every rule."""
    return check(parse(one.text), Settings(consumer=one.consumer))


def in_process(configs: Sequence[Config], repeat: int) -> None:
    """Print the cost per file of every rule beside that of the schema; only what ``json`` reads can be compared."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    validator = jsonschema.validators.validator_for(schema)(schema)
    readable = [one for one in configs if is_json(one.text)]
    theirs = least(lambda one: list(validator.iter_errors(json.loads(one.text))), readable, repeat)
    every = least(ours, readable, repeat)
    mean = [1000 * statistics.fmean(times) for times in (every, theirs)]
    print(f"in process, {len(readable)} files that are strict JSON")
    print(f"  {len(every_rule())} rules, with fixes         {mean[0]:7.2f} ms a file")
    print(f"  {type(validator).__name__:28}{mean[1]:7.2f} ms a file   {mean[1] / mean[0]:.2f} x")


def per_100_lines(name: str, configs: Sequence[Config], repeat: int) -> None:
    """Print the time per 100 lines: of all together, and of those that have about as many."""
    times = least(ours, configs, repeat)
    lines = sum(one.lines for one in configs)
    long = [100_000 * took / one.lines for one, took in zip(configs, times, strict=True) if 75 <= one.lines <= 150]
    print(f"{name}: {len(configs)} configs, {lines} lines")
    print(f"  {100_000 * sum(times) / lines:6.2f} ms per 100 lines, {1000 * statistics.fmean(times):.2f} ms a file")
    if long:
        print(
            f"  {statistics.median(long):6.2f} ms per 100 lines in the middle of {len(long)} files of 75 to 150 lines"
        )


def is_json(text: str) -> bool:
    """Return whether ``json`` reads a text."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def main() -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a folder of configs")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--generated", type=int, default=1000)
    args = parser.parse_args()
    files = [file for file in sorted(args.folder.rglob("*")) if file.suffix in SUFFIXES and file.is_file()]
    if not files:
        parser.error(f"{args.folder} holds no configs")
    commands(files, args.repeat)
    real = [config(file.read_text(encoding="utf-8-sig", errors="replace")) for file in files]
    generated = [config(case.written, case.consumer) for case in cases(args.generated, seed=1)]
    in_process(real, args.repeat)
    per_100_lines("real", real, args.repeat)
    per_100_lines("generated", generated, args.repeat)
    return 0


if __name__ == "__main__":
    sys.exit(main())
