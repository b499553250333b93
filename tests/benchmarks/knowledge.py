"""What it costs to know a key: time and memory to answer one hover, and to answer the next.

    python -m tests.benchmarks.knowledge [--repeat N]

The floors are measured in the same run: a bare Python for the first answer, ``json.loads`` of the one file that holds
the key for the reading of a section, and of all files together for what laziness saves.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path

from dsmigrate.docs.keys import key_text
from dsmigrate.knowledge import Knowledge, knowledge, lookup, store
from dsmigrate.schemas_location import schema_file

SERVER = Path(__file__).parents[2] / "server"
KEY = "zero_optimization.reduce_bucket_size"
ONE_HOVER = f"""
import tracemalloc; tracemalloc.start()
from dsmigrate.knowledge import knowledge
code = tracemalloc.get_traced_memory()[0]
key = knowledge().key({KEY!r})
assert key.doc and key.history
print(code, tracemalloc.get_traced_memory()[0] - code)
"""


def best(work: Callable[[], object], repeat: int) -> float:
    """Return the least time of one call in microseconds."""
    number = max(1, int(0.002 / max(1e-7, timeit.timeit(work, number=1))))
    return min(timeit.repeat(work, number=number, repeat=repeat)) / number * 1e6


def process(arguments: list[str], environment: dict[str, str], repeat: int) -> float:
    """Return the median time of a process in milliseconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def forget() -> None:
    """Empty every cache of the knowledge."""
    for cache in (store.load, store.paths_known, store.children, store.names, lookup.knowledge):
        cache.cache_clear()


def first() -> Knowledge:
    """Answer one hover with nothing in memory."""
    forget()
    known = knowledge()
    assert known.key(KEY)
    return known


def main() -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=20)
    repeat = parser.parse_args().repeat
    environment = {**os.environ, "PYTHONPATH": str(SERVER)}
    bare = process(["-c", "pass"], environment, repeat)
    hover = process(["-c", f"from dsmigrate.knowledge import knowledge; knowledge().key({KEY!r})"], environment, repeat)
    print(f"python -c pass                    {bare:8.1f} ms")
    print(f"import and the first key          {hover:8.1f} ms  {hover / bare:6.2f} x python -c pass")
    memory = subprocess.check_output([sys.executable, "-c", ONE_HOVER], env=environment, text=True).split()
    print(
        f"memory for the first key          {int(memory[1]) / 1024:8.0f} KiB (and {int(memory[0]) / 1024:.0f} of code)"
    )
    folder = schema_file("deepspeed/compiled/index.json").parent
    one = [(folder / name).read_bytes() for name in ("index.json", "zero_optimization.json")]
    everything = [path.read_bytes() for path in folder.glob("*.json")]
    floor = best(lambda: [json.loads(data) for data in one], repeat)
    whole = best(lambda: [json.loads(data) for data in everything], repeat)
    cold = best(first, repeat)
    print(f"json.loads of the two files       {floor:8.1f} µs  {sum(map(len, one)) / 1024:.0f} KiB")
    print(f"json.loads of all files           {whole:8.1f} µs  {sum(map(len, everything)) / 1024:.0f} KiB")
    print(f"the first key, nothing in memory  {cold:8.1f} µs  {cold / floor:6.2f} x json.loads of its files")
    known = first()
    key = known.key(KEY)
    assert key is not None
    print(f"the same key again                {best(lambda: known.key(KEY), repeat):8.2f} µs")
    place = ("data_efficiency", "data_sampling", "curriculum_learning", "curriculum_metrics", "x", "min_difficulty")
    print(f"a place below a free name         {best(lambda: known.key(place), repeat):8.2f} µs")
    print(f"a hover text                      {best(lambda: key_text(key, known), repeat):8.1f} µs")
    wrong = best(lambda: known.nearest("reduce_buket_size", "zero_optimization"), repeat)
    print(f"the nearest to a wrong key        {wrong:8.1f} µs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
