"""How well the rules agree with the real DeepSpeed, and what a check costs.

    python -m tests.benchmarks.rule_agreement [--count N] [--seed N] [--corpus FOLDER] [--releases N] [--list]

Generated configs, valid ones and ones with one to three planted faults, are given to the rules and to the real
DeepSpeed (``DSMIGRATE_TORCH_PYTHON`` names its interpreter): its config class, its engine and a first step on a tiny
model. Printed are the share of rejected configs with an error on the responsible key, the share of accepted ones that a
rule calls rejected, and every kind of difference with an example. ``--corpus`` does the same for the files of a folder,
``--releases`` for N configs per older release, whose own config class is the judge. Slips that DeepSpeed swallows are
counted by section and kind. The command exits with 1 when a difference is left.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
import timeit
from collections.abc import Iterable
from pathlib import Path

from dsmigrate.document import parse
from dsmigrate.knowledge import knowledge
from dsmigrate.rules import Settings, check
from tests.rules.agreement import compare, corpus, releases, report, silent
from tests.rules.agreement.generate import cases
from tests.rules.agreement.valid import valid

LINES = 100


def head(title: str) -> None:
    """Print a title."""
    print(f"\n== {title}")


def show(lines: Iterable[str]) -> None:
    """Print lines."""
    for line in lines:
        print(line)


def generated(count: int, seed: int, *, listing: bool) -> bool:
    """Compare generated configs; return whether nothing is left."""
    start = time.perf_counter()
    rows = compare.examine(list(cases(count, seed)))
    head(f"{count} generated configs, seed {seed}, {time.perf_counter() - start:.0f} s")
    print(report.rates(rows))
    show(report.by_kind(rows))
    print()
    show(report.never_met(knowledge(), rows))
    return _rest(rows, listing=listing)


def of_corpus(folder: Path, *, listing: bool) -> bool:
    """Compare the files of a folder; return whether nothing is left."""
    rows = compare.examine(list(corpus.cases(folder)), corpus.answers)
    head(f"{len(rows)} real files")
    print(report.rates(rows))
    return _rest(rows, listing=listing)


def of_releases(count: int, seed: int, *, listing: bool) -> bool:
    """Compare older releases at the level of their config class; return whether nothing is left."""
    head(f"{count} generated configs for each of {len(releases.RELEASES)} older releases, config class alone")
    clean = True
    for version in releases.RELEASES:
        rows = releases.compare(version, releases.sources().root(version), count, seed)
        print(f"{version:8} {report.rates(rows)}")
        show([*report.differences(rows, notes=False), *report.unjudged(rows)] if listing else ())
        clean = clean and not any(compare.disagreements(rows))
    return clean


def _rest(rows: list[compare.Row], *, listing: bool) -> bool:
    left = list(compare.disagreements(rows))
    print(f"\nleft: {len(left)}")
    show(report.differences(rows))
    print("\ncannot be judged here:")
    show(report.unjudged(rows))
    print("\nsaid to crash, where it takes more than one step on a CPU:")
    show(report.beyond(rows))
    for row in left if listing else ():
        print(f"{row.case.name}  {row.outcome} [{row.family}]  {row.what}\n  {json.dumps(row.case.written)[:2000]}")
    return not left


def swallowed(seed: int, *, listing: bool) -> bool:
    """Count the slips that are reported; return whether 99 % of them are, with the right key first."""
    planted, ambiguous = silent.planted(seed)
    told = silent.judge(planted)
    head(f"slips in sections that swallow unknown keys ({ambiguous} more could mean another key as well)")
    show(silent.table(told))
    for one in told:
        if listing and not one.right:
            print(f"  {one.slip.kind}: {one.slip.path}, meant {one.slip.meant}: {one.message}")
    return sum(one.right for one in told) >= 0.99 * len(told)


def speed() -> None:
    """Print what a check costs in process for configs of about a hundred lines."""
    texts = [text for index in range(300) if 90 <= len((text := long_config(index)).splitlines()) <= 110][:40]
    times = []
    for text in texts:
        best = min(timeit.repeat(lambda text=text: check(parse(text), Settings()), number=1, repeat=5))  # type: ignore[misc]
        times.append(best / len(text.splitlines()) * LINES * 1000)
    head(f"a check of {LINES} lines in process: {statistics.median(times):.2f} ms (median of {len(texts)} configs)")


def long_config(index: int) -> str:
    """Return the text of several generated configs in one."""
    rng = random.Random(index)  # noqa: S311 - repeatable on purpose
    config: dict[str, object] = {}
    for _ in range(4):
        config |= valid(rng, knowledge())[0]
    return json.dumps(config, indent=2)


def main(argv: list[str] | None = None) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--corpus", type=Path, help="a folder of real configs")
    parser.add_argument("--releases", type=int, default=300, help="configs per older release; 0 leaves them out")
    parser.add_argument("--list", action="store_true", help="print every config that is left")
    args = parser.parse_args(argv)
    speed()
    clean = [swallowed(args.seed, listing=args.list)]
    if args.count:
        clean.append(generated(args.count, args.seed, listing=args.list))
    if args.corpus is not None:
        clean.append(of_corpus(args.corpus, listing=args.list))
    if args.releases:
        clean.append(of_releases(args.releases, args.seed, listing=args.list))
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
