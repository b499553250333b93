"""``python -m tests.benchmarks.completion [FILE…]``: what one completion costs, at random places and where keys go.

Costs are processor time of one process, which other work of the machine moves least, beside a parse of the same text
in the same run.
"""

from __future__ import annotations

import gc
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dsmigrate.document import Object, parse
from dsmigrate.editing import View
from dsmigrate.editing.completion import complete
from tests.benchmarks.document import config

ROUNDS = 2000


def costs(work: Callable[[int], object], places: Sequence[int], rounds: int) -> list[float]:
    """Return the sorted costs of so many calls at places drawn by chance, in milliseconds."""
    rng = random.Random(1)  # noqa: S311 - nothing here is secret
    found = []
    for _ in range(rounds):
        place = rng.choice(places)
        start = time.thread_time()
        work(place)
        found.append((time.thread_time() - start) * 1000)
    return sorted(found)


def show(name: str, found: Sequence[float]) -> None:
    """Print the middle and the tail of sorted costs."""
    tail = found[int(len(found) * 0.95)]
    print(f"  {name:32} median {statistics.median(found):7.3f} ms   p95 {tail:7.3f} ms")


def measure(name: str, text: str) -> None:
    """Print what completion costs in a text."""
    document = parse(text)
    root = document.root
    members = list(root) if isinstance(root, Object) else []
    places = {
        "at random places": range(len(text) + 1),
        "where keys go": [index + 1 for index, sign in enumerate(text) if sign in "{,"] or [0],
        "where keys go at the top": [member.comma + 1 for member in members if member.comma is not None] or [0],
    }
    print(f"{name}: {text.count(chr(10)) + 1} lines, {len(text)} characters")
    show("a parse of the text", costs(lambda _: parse(text), [0], ROUNDS // 10))

    def once(place: int) -> object:
        return complete(View(document), place, snippets=True)

    for where, chosen in places.items():
        for place in list(chosen)[:: max(1, len(chosen) // 50)]:
            once(place)
        gc.collect()
        show(where, costs(once, chosen, ROUNDS))


def main() -> None:
    """Measure the named files, or made ones of 100 and 1000 lines."""
    if sys.argv[1:]:
        for name in sys.argv[1:]:
            measure(name, Path(name).read_text(encoding="utf-8"))
        return
    for lines in (100, 1000):
        measure("made", config(lines))


if __name__ == "__main__":
    main()
