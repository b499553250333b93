"""``python -m tests.benchmarks.server_soak``: random edits in many sessions of the language server, texts compared.

Prints the edits, the sessions, and the memory of the server after the first tenth of each session and at its end.
"""

from __future__ import annotations

import argparse
import statistics

from tests.language_server import soak


def main() -> None:
    """Run sessions until as many edits were made as were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edits", type=int, default=200_000)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    growth, done = [], 0
    for number in range(asked.sessions):
        encoding = tuple(soak.UNITS)[number % len(soak.UNITS)]
        made, first, last = soak.session(asked.edits // asked.sessions, asked.seed + number, encoding, requests=400)
        done += made
        growth.append(last - first)
        print(f"session {number + 1}: {made} edits in {encoding}, {first:.1f} -> {last:.1f} MiB")
    print(
        f"{done} edits in {asked.sessions} sessions, texts equal; memory grew by {statistics.median(growth):.2f} MiB "
        f"in the median session, {max(growth):.2f} MiB at most"
    )


if __name__ == "__main__":
    main()
