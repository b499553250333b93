"""Reads configs as JSON lines, each with a world size, and says what DeepSpeedConfig makes of it.

Runs in a child process that has torch and deepspeed. There is no process group; the world size is told to DeepSpeed.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    """Judge ``{"config": …, "world": …}`` on standard input, one answer a line: ``{"error": …}``, null if accepted."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # DeepSpeed's own talk
    from deepspeed.runtime import config as runtime  # noqa: PLC0415 - after its talk was sent elsewhere

    for line in sys.stdin:
        asked = json.loads(line)
        world = asked["world"]
        runtime.dist.get_rank = lambda *_: 0
        runtime.dist.get_world_size = lambda *_, world=world: world
        error = None
        try:
            runtime.DeepSpeedConfig(asked["config"])
        except Exception as problem:  # noqa: BLE001 - the answer is whatever DeepSpeed says
            error = f"{type(problem).__name__}: {' '.join(str(problem).split())}"
        answers.write(json.dumps({"error": error}) + "\n")
        answers.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
