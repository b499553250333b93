"""Conversions of scripts in other spellings: ``python -m tests.benchmarks.spelling [--dev LIST FOLDER] [--only WORD]``.

Each rewriting of tests/codemod/spelling keeps what a script does. The table has a line for each: how many scripts it
could be applied to, and how many of them came out as before (status, todos, refusals, differences, config). With
``--dev`` the scripts of a list of repositories are taken as well (JSON lines with ``repo`` and ``path``, laid out under
FOLDER as owner+name).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.codemod.spelling.outcomes import Read, apart, outcome
from tests.codemod.spelling.rewritings import REWRITINGS, rewritten

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def scripts(only: str) -> Iterator[tuple[Path, str]]:
    """The entries of the examples, with the folders they are read from."""
    for path in sorted(EXAMPLES.rglob("*.py")):
        text = path.read_text()
        if "__main__" in text and only in str(path):
            yield path.parent, path.name


def reading(folder: Path) -> Read:
    """A reader of the files of a folder."""

    def read(path: str) -> bytes | None:
        found = folder / path
        return found.read_bytes() if found.is_file() else None

    return read


def tried(script: tuple[Path, str], words: str = "") -> tuple[str, dict[str, list[str]]]:
    """In which ways each rewriting of a script comes out otherwise; nothing for those that have no place in it."""
    folder, entry = script
    read = reading(folder)
    before = outcome(read, entry)
    found: dict[str, list[str]] = {}
    if before["status"] in {"refused", "unchanged"}:
        return f"{folder.name}/{entry}", found
    source = (read(entry) or b"").decode()
    for how in REWRITINGS:
        made = rewritten(source, how) if words in how else None
        if made is not None:
            try:
                found[how] = apart(before, outcome(read, entry, *made))
            except Exception as error:  # noqa: BLE001 - a crash is what is looked for
                found[how] = [f"{type(error).__name__}: {error}"]
    return f"{folder.name}/{entry}", found


def main() -> int:
    """Print the table; 1 where a spelling made a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dev", nargs=2, metavar=("LIST", "FOLDER"), type=Path)
    parser.add_argument("--only", default="", help="scripts whose path has this text")
    parser.add_argument("--rewriting", default="", help="rewritings whose name has this text")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    every = list(scripts(given.only))
    if given.dev:
        rows = [json.loads(line) for line in given.dev[0].read_text().splitlines()]
        every += [
            (given.dev[1] / row["repo"].replace("/", "+"), row["path"])
            for row in rows
            if given.only in f"{row['repo']}/{row['path']}"
        ]
    applied = dict.fromkeys(REWRITINGS, 0)
    same = dict.fromkeys(REWRITINGS, 0)
    with ProcessPoolExecutor(given.jobs) as pool:
        for script, found in pool.map(partial(tried, words=given.rewriting), every):
            for how, differences in found.items():
                applied[how] += 1
                same[how] += not differences
                for difference in differences:
                    print(f"{script}: {how}: {difference}", file=sys.stderr, flush=True)
    for how in REWRITINGS:
        print(f"{how:40} {same[how]:5} of {applied[how]:5}")
    print(f"{'all':40} {sum(same.values()):5} of {sum(applied.values()):5}")
    return int(same != applied)


if __name__ == "__main__":
    raise SystemExit(main())
