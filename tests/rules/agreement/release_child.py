"""Reads configs as JSON lines and says what the config class of one older release makes of each.

The release's own config code runs; torch, and every module that is no config code, are stubs. Arguments: the folder
that holds ``dsmigrate``, and the folder that holds ``deepspeed`` of the release.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from pathlib import Path


def main() -> None:
    """Judge ``{"config": …, "worlds": […]}`` on standard input, one answer a line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the release's own talk
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    sys.path.insert(0, sys.argv[1])
    from dsmigrate.derivation.child.importer import install  # noqa: PLC0415 - from the folder given
    from dsmigrate.derivation.child.main import refuse  # noqa: PLC0415

    install(Path(sys.argv[2]))
    import deepspeed.runtime.config as runtime  # noqa: PLC0415 - the release's own

    runtime.dist.get_rank = lambda *_, **__: 0
    sys.addaudithook(refuse)
    for line in sys.stdin:
        asked = json.loads(line)
        error = ""
        for world in asked["worlds"]:
            runtime.dist.get_world_size = lambda *_, world=world, **__: world
            try:
                runtime.DeepSpeedConfig(json.loads(line)["config"])
                error = ""
                break
            except Exception as problem:  # noqa: BLE001 - the answer is whatever the release says
                error = error or f"{type(problem).__name__}: {' '.join(str(problem).split())[:600]}"
        answers.write(json.dumps({"verdict": "config" if error else "accepted", "error": error}) + "\n")
        answers.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
