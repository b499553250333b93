"""``python -m tests.benchmarks.server_soak``: random edits in many sessions of the language server, texts compared.

Prints the edits, the sessions, and the memory of the server after each tenth of each session. What it needs to answer
is loaded, and remembered up to fixed bounds, when it is first asked for; so the second half of a long session tells
more of growth than the first: ``--sessions 1 --edits 600000``.
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
    growth, late, done = [], [], 0
    for number in range(asked.sessions):
        encoding = tuple(soak.UNITS)[number % len(soak.UNITS)]
        made, memory = soak.session(asked.edits // asked.sessions, asked.seed + number, encoding, requests=400)
        done += made
        growth.append(memory[-1] - memory[0])
        late.append(memory[-1] - memory[4])
        print(f"session {number + 1}: {made} edits in {encoding}, MiB: {' '.join(f'{size:.1f}' for size in memory)}")
    print(
        f"{done} edits in {asked.sessions} sessions, texts equal; memory grew by {statistics.median(growth):.2f} MiB "
        f"in the median session, {max(growth):.2f} MiB at most; in the second half of each by "
        f"{statistics.median(late):.2f} and {max(late):.2f}"
    )


if __name__ == "__main__":
    main()
